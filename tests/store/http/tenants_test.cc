// SPDX-License-Identifier: Apache-2.0
// Tenants: what one pushes no other sees, by whatever route.
#include "store/http/tenants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "store/http/handler.h"
#include "tests/fakes/fake_clock.h"
#include "tests/store/http/store_server.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::store {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPush[] = "/push.v1.PusherService/Push";

class TenantsTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(3); }

  void Open(size_t most) {
    handler_.reset();
    tenants_.reset();
    auto tenants = Tenants::Open({.database = {.directory = dir_.path()}, .max_tenants = most},
                                 &clock_, &metrics_);
    ASSERT_TRUE(tenants.ok()) << tenants.status();
    tenants_ = *std::move(tenants);
    handler_ = std::make_unique<StoreHandler>(
        nullptr, &clock_, &metrics_,
        StoreHandler::Options{.access = *Access::Parse("all bearer any\n"
                                                       "all bearer of-a a\n"),
                              .tenants = tenants_.get()});
  }

  HttpServerResponse Ask(const std::string& method, const std::string& path,
                         const std::string& tenant, const std::string& body = "",
                         const std::string& token = "any") {
    HttpServerRequest request{.method = method, .path = path, .body = body};
    request.headers = {{"authorization", "Bearer " + token},
                       {"content-type", method == "POST" && path == kPush ? "application/proto"
                                                                          : "application/json"}};
    if (!tenant.empty()) request.headers["x-scope-orgid"] = tenant;
    return handler_->Handle(request);
  }
  int PushTo(const std::string& tenant, const std::string& service,
             const std::string& token = "any") {
    return Ask("POST", kPush, tenant, PushBody(SeriesLabels(service), {CpuProfileAt(kNow)}), token)
        .status;
  }

  TempDir dir_;
  FakeClock clock_{kNow};
  Metrics metrics_;
  std::unique_ptr<Tenants> tenants_;
  std::unique_ptr<StoreHandler> handler_;
};

TEST_F(TenantsTest, NoRouteShowsAnotherTenantsProfiles) {
  ASSERT_EQ(PushTo("a", "shop-of-a"), 200);
  ASSERT_EQ(PushTo("b", "shop-of-b"), 200);
  for (const char* path : {"/series", "/labels/service_name/values"}) {
    EXPECT_THAT(Ask("GET", path, "a").body, HasSubstr("shop-of-a")) << path;
    EXPECT_THAT(Ask("GET", path, "a").body, Not(HasSubstr("shop-of-b"))) << path;
  }
  const std::string hour = "{\"start\":" + std::to_string((kNow - kHour) / 1'000'000) +
                           ",\"end\":" + std::to_string(kNow / 1'000'000 + 1) + "}";
  EXPECT_THAT(Ask("POST", "/querier.v1.QuerierService/Series", "b", hour).body,
              AllOf(HasSubstr("shop-of-b"), Not(HasSubstr("shop-of-a"))));
  const auto top_of = [&](const std::string& tenant) {
    HttpServerRequest request{.method = "GET", .path = "/top"};
    request.query = {{"query", "process_cpu{service_name=\"shop-of-a\"}"}};
    request.headers = {{"authorization", "Bearer any"}, {"x-scope-orgid", tenant}};
    return handler_->Handle(request).status;
  };
  EXPECT_EQ(top_of("a"), 200);
  EXPECT_EQ(top_of("b"), 404);
  EXPECT_TRUE(std::filesystem::exists(dir_.path() + "/tenants/a"));
}

TEST_F(TenantsTest, ALinkNamesItsTenantByAParameter) {
  ASSERT_EQ(PushTo("a", "shop-of-a"), 200);
  HttpServerRequest request{.method = "GET", .path = "/series"};
  request.query = {{"tenant", "a"}};
  request.headers = {{"authorization", "Bearer any"}};
  EXPECT_THAT(handler_->Handle(request).body, HasSubstr("shop-of-a"));
  request.headers["x-scope-orgid"] = "b";  // the header counts
  EXPECT_EQ(handler_->Handle(request).status, 404);
}

TEST_F(TenantsTest, RequestsWithoutATenantOrWithABadNameAreRefused) {
  EXPECT_EQ(PushTo("", "shop"), 401);
  EXPECT_EQ(Ask("GET", "/series", "").status, 401);
  for (const std::string name : {"..", ".", "a/b", "../a", "a b", "\xc3\xa4", "a|b"}) {
    EXPECT_EQ(PushTo(name, "shop"), 400) << name;
    EXPECT_FALSE(Tenants::IsName(name));
  }
  EXPECT_FALSE(Tenants::IsName(std::string(151, 'a')));
  EXPECT_TRUE(Tenants::IsName("team-A_1.prod!*'()"));
  EXPECT_EQ(Ask("GET", "/healthz", "").status, 200);
  EXPECT_EQ(Ask("GET", "/speedscope/", "").status, 200);
}

TEST_F(TenantsTest, ACredentialOfATenantOpensNoOther) {
  ASSERT_EQ(PushTo("b", "shop-of-b"), 200);
  EXPECT_EQ(PushTo("a", "shop", "of-a"), 200);
  EXPECT_EQ(PushTo("b", "shop", "of-a"), 403);
  EXPECT_EQ(Ask("GET", "/series", "b", "", "of-a").status, 403);
  EXPECT_EQ(Ask("GET", "/series", "", "", "of-a").status, 403);
  EXPECT_EQ(Ask("GET", "/metrics", "", "", "of-a").status, 403);
  EXPECT_EQ(Ask("GET", "/series", "a", "", "of-a").status, 200);
  EXPECT_EQ(Ask("GET", "/speedscope/", "", "", "of-a").status, 200);
}

TEST_F(TenantsTest, NumberIsBoundedAndAllAreThereAfterARestart) {
  for (const char* tenant : {"a", "b", "c"})
    ASSERT_EQ(PushTo(tenant, "shop"), 200);
  EXPECT_EQ(PushTo("d", "shop"), 429);
  EXPECT_EQ(Ask("GET", "/series", "d").status, 404);
  EXPECT_EQ(PushTo("a", "shop2"), 200);
  Open(3);
  EXPECT_THAT(Ask("GET", "/series", "c").body, HasSubstr("shop"));
  handler_.reset();
  tenants_.reset();
  const Status fewer =
      Tenants::Open({.database = {.directory = dir_.path()}, .max_tenants = 2}, &clock_, &metrics_)
          .status();
  EXPECT_EQ(fewer.code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace flamefleet::store
