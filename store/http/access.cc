// SPDX-License-Identifier: Apache-2.0
#include "store/http/access.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "base/base64.h"

namespace flamefleet::store {
namespace {

// Of scheme and proof: equal lengths, so that a comparison in constant time tells nothing.
std::string DigestOf(const std::string& scheme, const std::string& proof) {
  const std::string text = scheme + " " + proof;
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string TakeWord(std::string_view* text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  const auto begin = std::find_if_not(text->begin(), text->end(), is_space);
  const auto end = std::find_if(begin, text->end(), is_space);
  std::string word(begin, end);
  text->remove_prefix(static_cast<size_t>(end - text->begin()));
  return word;
}

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

Result<Access> Access::Parse(std::string_view text) {
  Access access;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string role = TakeWord(&line);
    if (role.empty() || role.starts_with('#')) continue;
    const std::string scheme = TakeWord(&line);
    const std::string value = TakeWord(&line);
    const std::string tenant = TakeWord(&line);
    const bool good =
        (role == "read" || role == "write" || role == "all") && !value.empty() &&
        TakeWord(&line).empty() &&
        (scheme == "bearer" || (scheme == "basic" && value.find(':') != std::string::npos));
    if (!good) {
      return InvalidArgumentError("line " + std::to_string(number) +
                                  ": want read, write or all; then basic NAME:PASSWORD or bearer "
                                  "TOKEN; then nothing or a tenant");
    }
    if (access.credentials_.size() == kMaxCredentials) {
      return InvalidArgumentError("more than " + std::to_string(kMaxCredentials) + " credentials");
    }
    access.credentials_.push_back(
        {.may_read = role != "write",
         .may_write = role != "read",
         .tenant = tenant,
         .digest = DigestOf(scheme, scheme == "basic" ? EncodeBase64(value) : value)});
  }
  if (access.credentials_.empty()) {
    return InvalidArgumentError("it has no credential: nobody could read or write");
  }
  return access;
}

Result<Access> Access::ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return ErrnoError(errno, "read " + path);
  Result<Access> access = Parse(std::string(std::istreambuf_iterator<char>(in), {}));
  if (!access.ok()) return Annotate(access.status(), path);
  return access;
}

const Access::Credential* Access::Find(const std::string& authorization) const {
  std::string_view rest = authorization;
  const std::string scheme = LowerCase(TakeWord(&rest));
  const std::string digest = DigestOf(scheme, TakeWord(&rest));
  const Credential* found = nullptr;
  for (const Credential& credential : credentials_) {
    if (CRYPTO_memcmp(credential.digest.data(), digest.data(), digest.size()) == 0) {
      found = &credential;
    }
  }
  return found;
}

bool Access::Knows(const std::string& authorization) const {
  return IsOpen() || Find(authorization) != nullptr;
}

bool Access::Allows(const std::string& authorization, Role role, const std::string* tenant) const {
  if (IsOpen()) return true;
  const Credential* const credential = Find(authorization);
  if (credential == nullptr) return false;
  if (tenant != nullptr && !credential->tenant.empty() && credential->tenant != *tenant) {
    return false;
  }
  return role == Role::kRead ? credential->may_read : credential->may_write;
}

}  // namespace flamefleet::store
