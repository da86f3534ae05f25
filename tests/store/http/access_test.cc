// SPDX-License-Identifier: Apache-2.0
#include "store/http/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "tests/store/http/store_server.h"

namespace flamefleet::store {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFile[] =
    "# who\n"
    "read basic grafana:secret\n"
    "\n"
    "write\tbearer agent-token\r\n"
    "all bearer both # not a comment here\n";

Access Good() {
  return *Access::Parse("read basic grafana:secret\nwrite bearer agent-token\nall bearer both\n");
}

TEST(Access, RoleSaysWhatACredentialMayDo) {
  const Access access = Good();
  const std::string reader = "Basic " + EncodeBase64("grafana:secret");
  EXPECT_TRUE(access.Allows(reader, Access::Role::kRead));
  EXPECT_FALSE(access.Allows(reader, Access::Role::kWrite));
  EXPECT_FALSE(access.Allows("Bearer agent-token", Access::Role::kRead));
  EXPECT_TRUE(access.Allows("bearer agent-token", Access::Role::kWrite));
  EXPECT_TRUE(access.Allows("Bearer both", Access::Role::kRead));
  EXPECT_TRUE(access.Allows("Bearer both", Access::Role::kWrite));
}

TEST(Access, OtherProofsAreUnknown) {
  const Access access = Good();
  for (const std::string& other :
       {std::string(), std::string("Bearer"), std::string("Bearer x"), std::string("both"),
        std::string("Basic both"), std::string("Bearer agent-token2"),
        "Basic " + EncodeBase64("grafana:Secret"), "Bearer " + EncodeBase64("grafana:secret")}) {
    EXPECT_FALSE(access.Knows(other)) << other;
    EXPECT_FALSE(access.Allows(other, Access::Role::kRead)) << other;
  }
  EXPECT_TRUE(Access().Allows("", Access::Role::kWrite));
}

TEST(Access, ALineThatIsNoCredentialIsRefusedWithoutItsText) {
  const Status bad = Access::Parse(kFile).status();
  EXPECT_EQ(bad.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorMessage(bad), HasSubstr("line 5"));
  EXPECT_THAT(ErrorMessage(bad), Not(HasSubstr("both")));
  for (const char* text : {"", "# only\n", "read\n", "read bearer\n", "admin bearer x\n",
                           "read basic nocolon\n", "read digest a:b\n"}) {
    EXPECT_FALSE(Access::Parse(text).ok()) << text;
  }
  EXPECT_EQ(Access::ReadFile("/nowhere/at/all").status().code(), StatusCode::kNotFound);
}

class AccessTest : public StoreServerTest {
 protected:
  HttpServerResponse Ask(const std::string& method, const std::string& path,
                         const std::string& authorization) {
    StoreHandler handler(database_.get(), &clock_, &metrics_, {.access = Good()});
    return handler.Handle(
        {.method = method,
         .path = path,
         .headers = {{"authorization", authorization}, {"content-type", "application/proto"}},
         .body = PushBody(SeriesLabels("shop"), {CpuProfileAt(kNow)})});
  }
};

TEST_F(AccessTest, RoutesWantTheirRole) {
  constexpr char kPush[] = "/push.v1.PusherService/Push";
  EXPECT_EQ(Ask("POST", kPush, "Bearer agent-token").status, 200);
  EXPECT_EQ(Ask("GET", "/top", "Bearer both").status, 200);
  EXPECT_EQ(Ask("GET", "/top", "Bearer agent-token").status, 403);
  const std::string reader = "Basic " + EncodeBase64("grafana:secret");
  EXPECT_EQ(Ask("POST", kPush, reader).status, 403);
  EXPECT_EQ(Ask("POST", "/ingest", reader).status, 403);
  EXPECT_EQ(Ask("POST", "/fleet", reader).status, 403);
  EXPECT_EQ(Ask("GET", "/fleet", "Bearer agent-token").status, 403);
  EXPECT_EQ(Ask("GET", "/fleet", reader).status, 404);  // nothing was said yet
  for (const char* path : {"/top", "/", "/metrics", "/pprof", "/querier.v1.QuerierService/Diff",
                           "/nothing", "/fleet", kPush}) {
    const HttpServerResponse response = Ask("GET", path, "");
    EXPECT_EQ(response.status, 401) << path;
    EXPECT_TRUE(response.headers.contains("WWW-Authenticate"));
  }
  EXPECT_EQ(Ask("GET", "/healthz", "").status, 200);
  EXPECT_EQ(Ask("GET", "/readyz", "").status, 200);
}

TEST_F(AccessTest, AProxyThatKeepsTheHeaderToItselfIsGivenAnother) {
  StoreHandler handler(database_.get(), &clock_, &metrics_, {.access = Good()});
  const auto ask = [&](const std::map<std::string, std::string>& headers) {
    return handler.Handle({.method = "GET", .path = "/types", .headers = headers}).status;
  };
  EXPECT_EQ(ask({{"x-flamefleet-authorization", "Bearer both"}}), 200);
  EXPECT_EQ(ask({{"x-flamefleet-authorization", "Bearer agent-token"}}), 403);
  EXPECT_EQ(ask({{"authorization", "Bearer x"}, {"x-flamefleet-authorization", "Bearer both"}}),
            401);
}

TEST_F(AccessTest, OtherCredentialsCountFromTheMomentTheyAreSet) {
  StoreHandler handler(database_.get(), &clock_, &metrics_, {.access = Good()});
  const auto ask = [&](const std::string& authorization) {
    return handler
        .Handle({.method = "GET", .path = "/types", .headers = {{"authorization", authorization}}})
        .status;
  };
  EXPECT_EQ(ask("Bearer both"), 200);
  handler.SetAccess(*Access::Parse("read bearer other\n"));
  EXPECT_EQ(ask("Bearer both"), 401);
  EXPECT_EQ(ask("Bearer other"), 200);
}

TEST_F(AccessTest, TheAddressForReadingReadsOnlyAndThatForProbesHasNoProfiles) {
  StoreHandler handler(database_.get(), &clock_, &metrics_, {.access = Good()});
  const auto request = [](const std::string& method, const std::string& path) {
    return HttpServerRequest{.method = method, .path = path};
  };
  for (const char* path : {"/types", "/", "/metrics", "/healthz"}) {
    EXPECT_EQ(handler.HandleReader(request("GET", path)).status, 200) << path;
  }
  for (const char* path : {"/push.v1.PusherService/Push", "/pyroscope/ingest", "/ingest",
                           "/v1development/profiles", "/fleet"}) {
    EXPECT_EQ(handler.HandleReader(request("POST", path)).status, 403) << path;
  }
  for (const char* path : {"/healthz", "/readyz", "/metrics"}) {
    EXPECT_EQ(handler.HandleProbe(request("GET", path)).status, 200) << path;
  }
  for (const char* path : {"/", "/top", "/types", "/fleet", "/metrics/", "/ingest"}) {
    EXPECT_EQ(handler.HandleProbe(request("GET", path)).status, 404) << path;
  }
}

}  // namespace
}  // namespace flamefleet::store
