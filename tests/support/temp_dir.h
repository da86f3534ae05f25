// SPDX-License-Identifier: Apache-2.0
// A directory that is gone with its owner.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/status.h"

namespace flamefleet {

class TempDir {
 public:
  TempDir() : path_((std::filesystem::temp_directory_path() / "flamefleet-XXXXXX").string()) {
    FF_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace flamefleet
