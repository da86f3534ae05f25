// SPDX-License-Identifier: Apache-2.0
// TlsServerTest: a fixture with certificates made by `openssl req` and an `openssl s_server` that
// uses them: "server" is for the name profiles.test, "address" for 127.0.0.1, both of the CA "ca".
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "tests/support/child_process.h"

namespace flamefleet {

class TlsServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    char path[] = "/tmp/ff-tls-XXXXXX";
    directory_ = mkdtemp(path);
    MakeCa("ca");
    MakeCa("other");
    MakeCertificate("server", "ca", "DNS:profiles.test");
    MakeCertificate("address", "ca", "IP:127.0.0.1");
    MakeCertificate("client", "ca", "DNS:agent");
  }
  static void TearDownTestSuite() { EXPECT_EQ(std::system(("rm -r " + directory_).c_str()), 0); }

  static std::string Pem(const std::string& name) {
    return *ReadFile(directory_ + "/" + name, 1 << 16);
  }

  // Serves a page with the certificate; further flags of s_server in `more`. Its address.
  std::string Serve(const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> command = {"openssl",
                                        "s_server",
                                        "-www",
                                        "-accept",
                                        "127.0.0.1:0",
                                        "-cert",
                                        directory_ + "/" + name + ".pem",
                                        "-key",
                                        directory_ + "/" + name + ".key"};
    command.insert(command.end(), more.begin(), more.end());
    server_.emplace(command);
    return server_->AwaitLine("ACCEPT ");
  }

  static inline std::string directory_;

 private:
  static void Run(const std::string& command) {
    EXPECT_EQ(std::system(("cd " + directory_ + " && " + command + " >/dev/null 2>&1").c_str()), 0)
        << command;
  }
  static void MakeCa(const std::string& name) {
    Run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" +
        name + " -keyout " + name + ".key -out " + name + ".pem");
  }
  static void MakeCertificate(const std::string& name, const std::string& ca,
                              const std::string& subject) {
    Run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name +
        " -addext subjectAltName=" + subject + " -keyout " + name + ".key -out " + name +
        ".csr && openssl x509 -req -in " + name + ".csr -copy_extensions copy -days 2 -CA " + ca +
        ".pem -CAkey " + ca + ".key -CAcreateserial -out " + name + ".pem");
  }

  std::optional<ChildProcess> server_;
};

}  // namespace flamefleet
