// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <openssl/evp.h>

#include <cctype>

namespace flamefleet {

std::string EncodeBase64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL ends it with a zero
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

Result<std::string> DecodeBase64(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  std::string decoded(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(decoded.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0 || text.size() % 4 != 0) return InvalidArgumentError("not base64");
  // EVP_DecodeBlock counts padding as data.
  const size_t padding = text.ends_with("==") ? 2 : (text.ends_with('=') ? 1 : 0);
  decoded.resize(static_cast<size_t>(size) - padding);
  return decoded;
}

}  // namespace flamefleet
