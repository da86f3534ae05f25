// SPDX-License-Identifier: Apache-2.0
// Access: who may read and who may write, by the Authorization header. The file has a credential
// per line, "#" begins a comment:
//
//   read  basic  NAME:PASSWORD
//   write bearer TOKEN
//   all   bearer TOKEN
//   read  basic  NAME:PASSWORD  TENANT     for that tenant alone
//
// Thread: any. Bounds: kMaxCredentials. Errors: kInvalidArgument with the number of the line; what
// a line says is in no message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace flamefleet::store {

constexpr size_t kMaxCredentials = 1000;

class Access {
 public:
  enum class Role { kRead, kWrite };

  // Everybody may do everything.
  Access() = default;
  static Result<Access> Parse(std::string_view text);
  static Result<Access> ReadFile(const std::string& path);

  friend bool operator==(const Access&, const Access&) = default;

  bool IsOpen() const { return credentials_.empty(); }
  // Known: 401 when not, with the same answer for what exists and what does not.
  bool Knows(const std::string& authorization) const;
  // `tenant` is whose profiles are asked for, empty where it is everybody's; nullptr: nobody's.
  bool Allows(const std::string& authorization, Role role,
              const std::string* tenant = nullptr) const;

 private:
  struct Credential {
    bool may_read = false;
    bool may_write = false;
    std::string tenant;  // empty: any
    std::string digest;  // of the header that proves it

    friend bool operator==(const Credential&, const Credential&) = default;
  };
  const Credential* Find(const std::string& authorization) const;

  std::vector<Credential> credentials_;
};

}  // namespace flamefleet::store
