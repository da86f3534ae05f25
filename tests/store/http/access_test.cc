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

}  // namespace
}  // namespace flamefleet::store
