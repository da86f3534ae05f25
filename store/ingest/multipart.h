// SPDX-License-Identifier: Apache-2.0
// multipart/form-data: the parts of a request body by name.
//
// Thread: any; pure: parts point into the body. Bounds: max_parts.
// Errors: kInvalidArgument says what is wrong with the body.
// Source: https://www.rfc-editor.org/rfc/rfc7578
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace flamefleet::store {

struct FormPart {
  std::string name;
  bool has_file_name = false;
  std::string_view content;
};

bool IsMultipart(const std::string& content_type);
Result<std::vector<FormPart>> ReadMultipart(const std::string& content_type, std::string_view body,
                                            size_t max_parts);

}  // namespace flamefleet::store
