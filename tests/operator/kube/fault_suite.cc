// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/kube/fault_suite.h"

#include <atomic>
#include <filesystem>

#include "base/fd.h"
#include "base/thread.h"
#include "operator/kube/stream_parser.h"
#include "tests/fakes/wire_writer.h"
#include "tests/support/command.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using Fault = FaultProxy::Fault;

std::string ErrorBody(int code, const std::string& reason) {
  return json{{"kind", "Status"},
              {"apiVersion", "v1"},
              {"code", code},
              {"reason", reason},
              {"message", "a fault of the test"}}
      .dump();
}

uint16_t PortOf(const ApiServer& server) {
  const std::string& url = server.config().base_url;
  return static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

}  // namespace

void Mirror::EndList() {
  std::vector<std::string> gone;
  for (const auto& [name, version] : Get()) {
    if (!listed_.contains(name)) gone.push_back(name);
  }
  for (const std::string& name : gone)
    Delete("default", name);
}

Status Mirror::Upsert(const json& object) {
  const ObjectHead head = HeadOf({&object, {}});
  return Put(head.name, head.version);
}

Status Mirror::UpsertMessage(std::string_view message) {
  const ObjectHead head = HeadOf({nullptr, message});
  return Put(head.name, head.version);
}

Status Mirror::Put(const std::string& name, const std::string& version) {
  listed_.insert(name);
  MutexLock lock(&mutex_);
  objects_[name] = version;
  return OkStatus();
}

void Mirror::Delete(const std::string& /*ns*/, const std::string& name) {
  MutexLock lock(&mutex_);
  objects_.erase(name);
  deleted_.insert(name);
}

Objects Mirror::Get() const {
  MutexLock lock(&mutex_);
  return objects_;
}

std::set<std::string> Mirror::Deleted() const {
  MutexLock lock(&mutex_);
  return deleted_;
}

bool IsWatchList(const std::string& target) {
  return target.find("sendInitialEvents") != std::string::npos;
}

bool IsWatch(const std::string& target) {
  return target.find("watch=1") != std::string::npos && !IsWatchList(target);
}

bool Any(const std::string& /*target*/) {
  return true;
}

std::string Refusal(int code, const std::string& reason, const std::string& headers) {
  return FaultProxy::Answer(code, "Content-Type: application/json\r\n" + headers,
                            ErrorBody(code, reason));
}

FaultProxy::Script Times(int times, std::function<bool(const std::string&)> concerned,
                         Fault fault) {
  auto left = std::make_shared<std::atomic<int>>(times);
  return [left, concerned = std::move(concerned),
          fault = std::move(fault)](const std::string& target) {
    return concerned(target) && left->fetch_sub(1) > 0 ? fault : Fault{};
  };
}

FaultProxy::Script EachOnce(const std::vector<std::string>& answers) {
  auto next = std::make_shared<std::atomic<size_t>>(0);
  return [next, answers](const std::string&) -> Fault {
    const size_t i = next->fetch_add(1);
    if (i >= answers.size()) return {};
    return {.kind = Fault::Kind::kAnswer, .answer = answers[i]};
  };
}

ApiServer* FaultSuite::server_ = nullptr;
std::string* FaultSuite::folder_ = nullptr;

FaultSuite::FaultSuite() : proxy_(PortOf(*server_), server_->config().tls, Certificate("one")) {}

void FaultSuite::SetUpTestSuite() {
  server_ = new ApiServer();
  folder_ = new std::string(testing::TempDir() + "/fault-suite");
  std::filesystem::create_directories(*folder_);
  MakeCertificate("one");
  MakeCertificate("two");
}

void FaultSuite::TearDownTestSuite() {
  std::filesystem::remove_all(*folder_);
  delete folder_;
  delete server_;
}

void FaultSuite::MakeCertificate(const std::string& name) {
  const CommandResult made = RunCommand(
      {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
       "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
       Path(name + ".key"), "-out", Path(name + ".pem")});
  ASSERT_EQ(made.exit_code, 0) << made.err;
}

std::string FaultSuite::Content(const std::string& name) {
  return *ReadFile(Path(name), 1 << 16);
}

FaultProxy::Certificate FaultSuite::Certificate(const std::string& name) {
  return {Content(name + ".pem"), Content(name + ".key")};
}

void FaultSuite::Start(ReflectorOptions options, ClientConfig config) {
  Put("stays", "1");
  Put("a", "1");
  Put("b", "1");
  StartReflector(std::move(options), std::move(config));
  ASSERT_TRUE(BecomesTrue());
}

void FaultSuite::StartReflector(ReflectorOptions options, ClientConfig config) {
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

void FaultSuite::TearDown() {
  thread_ = {};
  for (const auto& [name, version] : Truth())
    EXPECT_TRUE(admin_->Delete(resource_, "default", name).ok());
  for (const std::string& name : mirror_.Deleted())
    EXPECT_TRUE(removed_.contains(name)) << name << " was alive";
}

void FaultSuite::Put(const std::string& name, const std::string& value) {
  json object = {{"apiVersion", "v1"},
                 {"kind", std::string(resource_.kind)},
                 {"metadata", {{"name", name}, {"annotations", {{"value", value}}}}}};
  if (GetParam()) object["spec"] = {{"containers", {{{"name", "c"}, {"image", "i"}}}}};
  const auto applied = admin_->Apply({resource_, "default", name, "test", object.dump(), false});
  ASSERT_TRUE(applied.ok()) << applied.status();
}

void FaultSuite::Remove(const std::string& name) {
  removed_.insert(name);
  ASSERT_TRUE(admin_->Delete(resource_, "default", name).ok());
}

void FaultSuite::Change() {
  Put("a", "2");
  Remove("b");
  Put("c", "1");
}

Objects FaultSuite::Truth(std::string* version) {
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

bool FaultSuite::BecomesTrue() {
  const Objects truth = Truth();
  return Eventually([&] { return mirror_.Get() == truth; });
}

size_t FaultSuite::Requests(const std::string& part) const {
  size_t count = 0;
  for (const std::string& target : proxy_.Targets())
    count += target.find(part) != std::string::npos ? 1 : 0;
  return count;
}

double FaultSuite::Answers(const std::string& code) {
  return metrics_
      .Counter("rest_client_requests_total",
               "Requests to the API server by method and status code.",
               {{"method", "GET"},
                {"code", code},
                {"host", "127.0.0.1:" + std::to_string(proxy_.port())}})
      .Value();
}

double FaultSuite::Lists() {
  return metrics_
      .Counter("flamefleet_operator_lists_total", "Complete lists read from the API server.",
               {{"kind", std::string(resource_.kind)}})
      .Value();
}

std::string FaultSuite::WatchAnswer(const std::string& type, const json& object,
                                    const std::string& message) const {
  if (!GetParam()) {
    return FaultProxy::Answer(200, "Content-Type: application/json\r\n",
                              json{{"type", type}, {"object", object}}.dump() + "\n");
  }
  const std::string raw = std::string("k8s\0", 4) + WireWriter().Bytes(2, message).text();
  const std::string event =
      WireWriter().Bytes(1, type).Bytes(2, WireWriter().Bytes(1, raw).text()).text();
  return FaultProxy::Answer(200,
                            "Content-Type: application/vnd.kubernetes.protobuf;stream=watch\r\n",
                            std::string(3, '\0') + static_cast<char>(event.size()) + event);
}

std::string FaultSuite::GoneEvent() const {
  return WatchAnswer("ERROR", json::parse(ErrorBody(410, "Expired")),
                     WireWriter().Bytes(4, "Expired").Number(6, 410).text());
}

std::string FaultSuite::Bookmark(const std::string& version) const {
  return WatchAnswer("BOOKMARK", {{"metadata", {{"resourceVersion", version}}}},
                     WireWriter().Bytes(1, WireWriter().Bytes(6, version).text()).text());
}

}  // namespace flamefleet
