// SPDX-License-Identifier: Apache-2.0
// Everything that can go wrong between the cache and a real kube-apiserver. After each fault the
// cache is what the server has, and nothing that is alive was ever reported as deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "operator/kube/reflector.h"
#include "operator/kube/stream_parser.h"
#include "tests/fakes/fault_proxy.h"
#include "tests/fakes/wire_writer.h"
#include "tests/operator/apiserver_fixture.h"
#include "tests/support/command.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Fault = FaultProxy::Fault;
using Kind = FaultProxy::Fault::Kind;

constexpr Resource kMaps{"ConfigMap", "v1", "configmaps"};

// Name to version.
using Objects = std::map<std::string, std::string>;

// Takes both encodings, and remembers what was deleted from it.
class Mirror final : public ObjectSink {
 public:
  explicit Mirror(bool messages) : messages_(messages) {}
  bool TakesMessages() const override { return messages_; }
  void BeginList() override { listed_.clear(); }
  void EndList() override {
    std::vector<std::string> gone;
    for (const auto& [name, version] : Get()) {
      if (!listed_.contains(name)) gone.push_back(name);
    }
    for (const std::string& name : gone)
      Delete("default", name);
  }
  Status Upsert(const json& object) override { return Put(HeadOf({&object, {}})); }
  Status UpsertMessage(std::string_view message) override {
    return Put(HeadOf({nullptr, message}));
  }
  void Delete(const std::string& /*ns*/, const std::string& name) override {
    MutexLock lock(&mutex_);
    objects_.erase(name);
    deleted_.insert(name);
  }
  Objects Get() const {
    MutexLock lock(&mutex_);
    return objects_;
  }
  std::set<std::string> Deleted() const {
    MutexLock lock(&mutex_);
    return deleted_;
  }

 private:
  Status Put(const ObjectHead& head) {
    listed_.insert(head.name);
    MutexLock lock(&mutex_);
    objects_[head.name] = head.version;
    return OkStatus();
  }

  const bool messages_;
  std::set<std::string> listed_;
  mutable Mutex mutex_;
  Objects objects_;
  std::set<std::string> deleted_;
};

bool IsWatchList(const std::string& target) {
  return target.find("sendInitialEvents") != std::string::npos;
}
bool IsWatch(const std::string& target) {
  return target.find("watch=1") != std::string::npos && !IsWatchList(target);
}

std::string ErrorBody(int code, const std::string& reason) {
  return json{{"kind", "Status"},
              {"apiVersion", "v1"},
              {"code", code},
              {"reason", reason},
              {"message", "a fault of the test"}}
      .dump();
}
std::string Refusal(int code, const std::string& reason, const std::string& headers = "") {
  return FaultProxy::Answer(code, "Content-Type: application/json\r\n" + headers,
                            ErrorBody(code, reason));
}

// A script that does `fault` to the first `times` requests that `concerned` accepts.
FaultProxy::Script Times(int times, std::function<bool(const std::string&)> concerned,
                         Fault fault) {
  auto left = std::make_shared<std::atomic<int>>(times);
  return [left, concerned = std::move(concerned),
          fault = std::move(fault)](const std::string& target) {
    return concerned(target) && left->fetch_sub(1) > 0 ? fault : Fault{};
  };
}
// A script that answers so, one after the other; what comes later passes.
FaultProxy::Script EachOnce(const std::vector<std::string>& answers) {
  auto next = std::make_shared<std::atomic<size_t>>(0);
  return [next, answers](const std::string&) -> Fault {
    const size_t i = next->fetch_add(1);
    if (i >= answers.size()) return {};
    return {.kind = Kind::kAnswer, .answer = answers[i]};
  };
}
bool Any(const std::string&) {
  return true;
}

// Protobuf pods, or ConfigMaps in JSON.
class FaultSuite : public testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() {
    server_ = new ApiServer();
    folder_ = new std::string(testing::TempDir() + "/fault-suite");
    std::filesystem::create_directories(*folder_);
    MakeCertificate("one");
    MakeCertificate("two");
  }
  static void TearDownTestSuite() {
    std::filesystem::remove_all(*folder_);
    delete folder_;
    delete server_;
  }
  // Signed by itself: it is its own CA.
  static void MakeCertificate(const std::string& name) {
    const CommandResult made = RunCommand(
        {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", Path(name + ".key"), "-out", Path(name + ".pem")});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  static std::string Path(const std::string& name) { return *folder_ + "/" + name; }
  static std::string Content(const std::string& name) { return *ReadFile(Path(name), 1 << 16); }
  static FaultProxy::Certificate Certificate(const std::string& name) {
    return {Content(name + ".pem"), Content(name + ".key")};
  }
  static uint16_t ServerPort() {
    const std::string& url = server_->config().base_url;
    return static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }

  // Three objects, and a cache that has them.
  void Start(ReflectorOptions options = {}, ClientConfig config = {}) {
    Put("stays", "1");
    Put("a", "1");
    Put("b", "1");
    StartReflector(std::move(options), std::move(config));
    ASSERT_TRUE(BecomesTrue());
  }
  void StartReflector(ReflectorOptions options = {}, ClientConfig config = {}) {
    config.base_url = "https://127.0.0.1:" + std::to_string(proxy_.port());
    if (config.ca_file.empty()) config.tls.ca_pem = Content("one.pem");
    auto client = RestClient::Create(config, SystemClock(), metrics_);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    options.resource = resource_;
    options.ns = "default";
    options.first_backoff = std::chrono::milliseconds(10);
    reflector_ = std::make_unique<Reflector>(*client_, options, mirror_, SystemClock(), metrics_);
    thread_ =
        StartThread("reflector", [this](const std::stop_token& stop) { reflector_->Run(stop); });
  }
  void TearDown() override {
    thread_ = {};
    for (const auto& [name, version] : Truth())
      EXPECT_TRUE(admin_->Delete(resource_, "default", name).ok());
    for (const std::string& name : mirror_.Deleted())
      EXPECT_TRUE(removed_.contains(name)) << name << " was alive";
  }

  void Put(const std::string& name, const std::string& value) {
    json object = {{"apiVersion", "v1"},
                   {"kind", std::string(resource_.kind)},
                   {"metadata", {{"name", name}, {"annotations", {{"value", value}}}}}};
    if (GetParam()) object["spec"] = {{"containers", {{{"name", "c"}, {"image", "i"}}}}};
    const auto applied = admin_->Apply({resource_, "default", name, "test", object.dump(), false});
    ASSERT_TRUE(applied.ok()) << applied.status();
  }
  void Remove(const std::string& name) {
    removed_.insert(name);
    ASSERT_TRUE(admin_->Delete(resource_, "default", name).ok());
  }
  // What the cache misses while it is cut off.
  void Change() {
    Put("a", "2");
    Remove("b");
    Put("c", "1");
  }

  Objects Truth(std::string* version = nullptr) {
    Objects objects;
    std::unique_ptr<ListParser> parser;
    const auto listed = admin_->Stream(
        {.verb = "list", .path_and_query = CollectionPath(resource_, "default")},
        [&](Encoding encoding) {
          parser = ListParser::Create(encoding, [&](const ServerObject& object) {
            const ObjectHead head = HeadOf(object);
            objects[head.name] = head.version;
            return OkStatus();
          });
        },
        [&](std::string_view piece) { return parser->Feed(piece); }, {});
    EXPECT_TRUE(listed.status.ok() && parser->Finish().ok()) << listed.status;
    if (version != nullptr) *version = parser->version();
    return objects;
  }
  bool BecomesTrue() {
    const Objects truth = Truth();
    return Eventually([&] { return mirror_.Get() == truth; });
  }
  // Requests that have `part` in their target.
  size_t Requests(const std::string& part) const {
    size_t count = 0;
    for (const std::string& target : proxy_.Targets())
      count += target.find(part) != std::string::npos ? 1 : 0;
    return count;
  }
  double Lists() {
    return metrics_
        .Counter("flamefleet_operator_lists_total", "Complete lists read from the API server.",
                 {{"kind", std::string(resource_.kind)}})
        .Value();
  }
  // A watch that says this and ends.
  std::string Watch(const std::string& type, const json& object, const std::string& message) const {
    std::string body = json{{"type", type}, {"object", object}}.dump() + "\n";
    if (GetParam()) {
      const std::string raw = std::string("k8s\0", 4) + WireWriter().Bytes(2, message).text();
      const std::string event =
          WireWriter().Bytes(1, type).Bytes(2, WireWriter().Bytes(1, raw).text()).text();
      body = std::string(3, '\0') + static_cast<char>(event.size()) + event;
    }
    return FaultProxy::Answer(200, "Content-Type: " + std::string(type_) + "\r\n", body);
  }
  std::string GoneEvent() const {
    return Watch("ERROR", json::parse(ErrorBody(410, "Expired")),
                 WireWriter().Bytes(4, "Expired").Number(6, 410).text());
  }
  std::string Bookmark(const std::string& version) const {
    return Watch("BOOKMARK", {{"metadata", {{"resourceVersion", version}}}},
                 WireWriter().Bytes(1, WireWriter().Bytes(6, version).text()).text());
  }

  static ApiServer* server_;
  static std::string* folder_;
  const Resource resource_ = GetParam() ? kPods : kMaps;
  const char* const type_ =
      GetParam() ? "application/vnd.kubernetes.protobuf;stream=watch" : "application/json";
  Metrics admin_metrics_;
  std::unique_ptr<RestClient> admin_ = server_->NewClient(admin_metrics_);
  FaultProxy proxy_{ServerPort(), server_->config().tls, Certificate("one")};
  Metrics metrics_;
  Mirror mirror_{GetParam()};
  std::set<std::string> removed_;
  std::unique_ptr<RestClient> client_;
  std::unique_ptr<Reflector> reflector_;
  std::jthread thread_;
};

ApiServer* FaultSuite::server_ = nullptr;
std::string* FaultSuite::folder_ = nullptr;

INSTANTIATE_TEST_SUITE_P(Kinds, FaultSuite, testing::Bool(), [](const auto& kind) {
  return kind.param ? "PodsInProtobuf" : "ConfigMapsInJson";
});

TEST_P(FaultSuite, AConnectionCutInsideAnObject) {
  Put("large", std::string(20'000, 'x'));
  // The list that it begins with is cut, then a watch.
  proxy_.SetScript(Times(3, Any, {.cut_after = 10'000}));
  Start();
  EXPECT_EQ(Lists(), 1);
  proxy_.SetScript(Times(2, IsWatch, {.cut_after = 10'000}));
  proxy_.CutAll();
  Change();
  Put("large", std::string(20'000, 'y'));
  EXPECT_TRUE(BecomesTrue());
  EXPECT_EQ(Lists(), 1) << "a cut watch needs no new list";
}

TEST_P(FaultSuite, GoneInAWatchEvent) {
  Start();
  proxy_.SetScript(Times(1, IsWatch, {.kind = Kind::kAnswer, .answer = GoneEvent()}));
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
  EXPECT_TRUE(Eventually([&] { return Lists() >= 2; }));
}

TEST_P(FaultSuite, GoneForAWatchAndForTheListAfterIt) {
  Start();
  proxy_.SetScript(Times(2, Any, {.kind = Kind::kAnswer, .answer = Refusal(410, "Expired")}));
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
}

TEST_P(FaultSuite, GoneForTheContinueTokenOfAList) {
  auto left = std::make_shared<std::atomic<int>>(2);
  proxy_.SetScript([left](const std::string& target) -> Fault {
    if (IsWatchList(target)) return {.kind = Kind::kAnswer, .answer = Refusal(422, "Invalid")};
    const bool next_page = target.find("continue=") != std::string::npos;
    if (!next_page || left->fetch_sub(1) <= 0) return {};
    return {.kind = Kind::kAnswer, .answer = Refusal(410, "Expired")};
  });
  ReflectorOptions options;
  options.page_size = 1;
  Start(options);
  Change();
  EXPECT_TRUE(BecomesTrue());
  EXPECT_GE(Requests("continue="), 1U);
}

TEST_P(FaultSuite, RefusalsOfEveryKind) {
  const std::vector<std::string> refusals = {
      Refusal(429, "TooManyRequests", "Retry-After: 1\r\n"),
      Refusal(503, "ServiceUnavailable", "Retry-After: 1\r\n"),
      Refusal(500, "InternalError"),
      Refusal(409, "Conflict"),
      FaultProxy::Answer(502, "Content-Type: text/html\r\n", "<html>bad gateway</html>"),
      FaultProxy::Answer(200, "Content-Type: text/html\r\n", "<html>a login page</html>"),
      FaultProxy::Answer(200, "Content-Type: text/html\r\n", ""),
      "rubbish\r\n\r\n",
  };
  proxy_.SetScript(EachOnce(refusals));  // to the list that it begins with
  Start();
  proxy_.SetScript(EachOnce(refusals));  // to a watch
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
}

TEST_P(FaultSuite, AHalfOpenConnection) {
  ReflectorOptions options;
  options.idle_timeout = std::chrono::seconds(2);
  Start(options);
  proxy_.SetScript(Times(1, IsWatch, {.kind = Kind::kHang}));
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
}

TEST_P(FaultSuite, AStreamOfBookmarksOnly) {
  Start();
  // Others write, so the version goes on; ours did not change.
  server_->MustKubectl({"create", "namespace", GetParam() ? "n1" : "n2"});
  std::string version;
  Truth(&version);
  proxy_.SetScript(Times(1, IsWatch, {.kind = Kind::kAnswer, .answer = Bookmark(version)}));
  proxy_.CutAll();
  EXPECT_TRUE(Eventually([&] { return Requests("resourceVersion=" + version) > 0; }));
  Change();
  EXPECT_TRUE(BecomesTrue());
  EXPECT_EQ(Lists(), 1);
}

TEST_P(FaultSuite, WatchListRefused) {
  proxy_.SetScript([](const std::string& target) -> Fault {
    if (!IsWatchList(target)) return {};
    return {.kind = Kind::kAnswer, .answer = Refusal(422, "Invalid")};
  });
  Start();
  EXPECT_EQ(Requests("limit="), 1U);
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
}

TEST_P(FaultSuite, AWatchListWithoutItsEnd) {
  proxy_.SetScript([this](const std::string& target) -> Fault {
    if (!IsWatchList(target)) return {};
    return {.kind = Kind::kAnswer, .answer = Bookmark("1")};
  });
  Start();
  EXPECT_GE(Requests("limit="), 1U);
  Change();
  EXPECT_TRUE(BecomesTrue());
}

TEST_P(FaultSuite, AnOlderServerAnswersAfterReconnect) {
  Start();
  std::string old;
  Truth(&old);
  // In the past that it would see again, "phoenix" is deleted; now it is alive.
  Put("phoenix", "1");
  ASSERT_TRUE(admin_->Delete(resource_, "default", "phoenix").ok());
  Put("phoenix", "2");
  ASSERT_TRUE(BecomesTrue());
  const std::set<std::string> before = mirror_.Deleted();
  proxy_.SetScript(
      [old, left = std::make_shared<std::atomic<int>>(2)](const std::string& target) -> Fault {
        if (!IsWatch(target) || left->fetch_sub(1) <= 0) return {};
        const size_t at = target.find("resourceVersion=");
        const size_t end = target.find('&', at);
        return {.target = target.substr(0, at) + "resourceVersion=" + old +
                          (end == std::string::npos ? "" : target.substr(end))};
      });
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue());
  std::set<std::string> deleted = mirror_.Deleted();
  deleted.erase("b");
  EXPECT_EQ(deleted, before);
  removed_.insert("phoenix");
}

TEST_P(FaultSuite, AVersionThatTheServerHasNotSeen) {
  ReflectorOptions options;
  options.idle_timeout = std::chrono::seconds(1);
  Start(options);
  // As after a restore of etcd: for ever from the future, and the server says nothing.
  proxy_.SetScript([](const std::string& target) -> Fault {
    if (!IsWatch(target)) return {};
    return {.kind = Kind::kHang};
  });
  proxy_.CutAll();
  Change();
  EXPECT_TRUE(BecomesTrue()) << "by a new list";
  EXPECT_GE(Lists(), 2);
}

TEST_P(FaultSuite, AChangedCa) {
  ClientConfig config;
  config.ca_file = Path("ca.pem");
  std::ofstream(config.ca_file) << Content("one.pem");
  Start({}, config);
  proxy_.SetCertificate(Certificate("two"));
  proxy_.CutAll();
  Change();
  ASSERT_TRUE(Eventually([&] {
    return metrics_.RenderText().find(
               "code=\"<error>\",host=\"127.0.0.1:" + std::to_string(proxy_.port()) +
               "\",method=\"GET\"} 0") == std::string::npos;
  }));
  std::ofstream(config.ca_file) << Content("two.pem");
  EXPECT_TRUE(BecomesTrue());
}

}  // namespace
}  // namespace flamefleet
