// SPDX-License-Identifier: Apache-2.0
// Backends that misbehave, each as documented for Pyroscope or as a network does: a row is what the
// server does to the first push, and what becomes of the profile while the server is well
// afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "agent/push/pusher.h"
#include "tests/support/fake_backend.h"
#include "tests/support/raw_socket.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr LaneOptions kOptions = {
    .first_backoff = milliseconds(5), .max_backoff = milliseconds(20), .push_timeout = seconds(2)};

FinishedProfile Profile(int number = 0) {
  return {.collection = {.pod_uid = "uid", .container = "app", .type = ProfileType::kCpu},
          .backend = "main",
          .labels = {{"service_name", "shop"}},
          .time_ns = SystemClock().WallNanos() + number,
          .pprof = "pprof " + std::to_string(number)};
}

// Reads one push and answers it as a healthy server.
void AnswerWell(const RawSocket& socket) {
  const std::string end = "\r\n\r\n";
  std::string request = socket.ReceiveUntil(end);
  const size_t at = request.find("Content-Length:");
  if (at == std::string::npos) return;
  const size_t length = std::stoul(request.substr(at + 15));
  const size_t body = request.find(end) + end.size();
  while (request.size() - body < length) {
    const std::string piece = socket.Receive();
    if (piece.empty()) return;
    request += piece;
  }
  socket.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

struct NetworkFault {
  const char* name;
  std::function<void(RawSocket&)> misbehave;
};

class NetworkFaultTest : public ::testing::TestWithParam<NetworkFault> {};

TEST_P(NetworkFaultTest, TheProfileIsSentAgainAndNotLost) {
  std::atomic<int> connections = 0;
  std::atomic<int> good = 0;
  RawServer server([&](RawSocket& socket) {
    if (connections++ == 0) {
      GetParam().misbehave(socket);
      socket.Close();
      return;
    }
    AnswerWell(socket);
    ++good;
  });
  Metrics metrics;
  Pusher pusher(kOptions, nullptr, &metrics, nullptr);
  ASSERT_TRUE(pusher.SetBackends({{"main", server.Url()}}).ok());
  pusher.Push(Profile());
  EXPECT_TRUE(pusher.Drain(seconds(60)));
  EXPECT_EQ(good, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, NetworkFaultTest,
    ::testing::Values(
        NetworkFault{"ClosedAtOnce", [](RawSocket&) {}},
        NetworkFault{"ClosedInTheRequest", [](RawSocket& socket) { socket.Receive(); }},
        NetworkFault{"ClosedInTheAnswer",
                     [](RawSocket& socket) {
                       socket.Receive();
                       socket.Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
                     }},
        NetworkFault{"NoHttp",
                     [](RawSocket& socket) {
                       socket.Receive();
                       socket.Send("SSH-2.0-OpenSSH_9.2\r\n\r\n");
                     }},
        // Half open: it takes the request and never says a word.
        NetworkFault{"NeverAnswers", [](RawSocket& socket) { socket.ReceiveAll(); }},
        // Past the push's timeout. Pyroscope has stored it then; the retry repeats labels and time.
        NetworkFault{"AnswersTooLate",
                     [](RawSocket& socket) {
                       socket.ReceiveAll();
                       socket.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                     }},
        NetworkFault{"AWebPage",
                     [](RawSocket& socket) {
                       socket.ReceiveUntil("pprof 0");
                       socket.Send(
                           "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
                           "Content-Length: 6\r\nConnection: close\r\n\r\n<html>");
                     }}),
    [](const auto& row) { return std::string(row.param.name); });

struct AnswerFault {
  const char* name;
  int status;
  const char* retry_after;
  const char* body;
  const char* dropped;  // reason; nullptr: it is delivered in the end
};

class AnswerFaultTest : public ::testing::TestWithParam<AnswerFault> {};

TEST_P(AnswerFaultTest, TheTableHoldsAndTheNextProfileArrives) {
  const AnswerFault& fault = GetParam();
  FakeBackend backend([&](int number) {
    HttpServerResponse response = {.status = number == 0 ? fault.status : 200};
    if (number != 0) return response;
    response.body = fault.body;
    if (*fault.retry_after != '\0') response.headers["Retry-After"] = fault.retry_after;
    return response;
  });
  Metrics metrics;
  Pusher pusher(kOptions, nullptr, &metrics, nullptr);
  ASSERT_TRUE(pusher.SetBackends({{"main", backend.Url()}}).ok());
  pusher.Push(Profile(1));
  EXPECT_TRUE(pusher.Drain(seconds(60)));
  pusher.Push(Profile(2));
  EXPECT_TRUE(pusher.Drain(seconds(60)));
  const auto delivered = metrics.Counter("flamefleet_agent_profiles_delivered_total",
                                         "Profiles that a backend acknowledged.");
  const int expected = fault.dropped == nullptr ? 2 : 1;
  EXPECT_TRUE(WaitUntil([&] { return delivered.Value() == expected; }));
  if (fault.dropped != nullptr) {
    EXPECT_EQ(
        metrics
            .Counter("flamefleet_agent_profiles_dropped_total",
                     "Profiles that were not delivered, by reason.", {{"reason", fault.dropped}})
            .Value(),
        1);
  } else {
    EXPECT_EQ(backend.Requests()[1].body, backend.Requests()[0].body);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, AnswerFaultTest,
    ::testing::Values(
        AnswerFault{"Timeout", 408, "", "", nullptr},
        AnswerFault{"TimeoutAndWhen", 408, "1", "", nullptr},
        AnswerFault{"RateLimit", 429, "", "push rate limit (4.0 MiB) exceeded", nullptr},
        AnswerFault{"RateLimitAndWhen", 429, "1", "", nullptr},
        AnswerFault{"ServerError", 500, "", "code = Unavailable", nullptr},
        AnswerFault{"ServerErrorAndWhen", 500, "1", "", nullptr},
        AnswerFault{"BadGateway", 502, "", "", nullptr},
        AnswerFault{"BadGatewayAndWhen", 502, "1", "", nullptr},
        AnswerFault{"Unavailable", 503, "", "", nullptr},
        AnswerFault{"UnavailableAndWhen", 503, "1", "", nullptr},
        AnswerFault{"UnavailableAndADate", 503, "Wed, 21 Oct 2015 07:28:00 GMT", "", nullptr},
        AnswerFault{"GatewayTimeout", 504, "", "deadline_exceeded", nullptr},
        AnswerFault{"GatewayTimeoutAndWhen", 504, "1", "", nullptr},
        AnswerFault{"InsufficientStorage", 507, "", "", nullptr},
        AnswerFault{"Unauthenticated", 401, "", "no org id", nullptr},
        AnswerFault{"Forbidden", 403, "", "", nullptr},
        AnswerFault{"NotFound", 404, "", "", nullptr},
        AnswerFault{"MethodNotAllowed", 405, "", "", nullptr},
        AnswerFault{"UnsupportedMediaType", 415, "", "", nullptr},
        AnswerFault{"Unimplemented", 501, "", "unimplemented", nullptr},
        AnswerFault{"Redirect", 302, "", "", nullptr},
        // What Pyroscope says with 400; what is about size cannot be split here, it is no profile.
        AnswerFault{"TooOld", 400, "", "profile is outside of ingestion window", "Expired"},
        AnswerFault{"StoreKeepsNothingSoOld", 400, "", "older than what this store keeps",
                    "Expired"},
        AnswerFault{"PayloadSize", 400, "",
                    "uncompressed profile payload size exceeds limit of 4.2 MB", "ProfileTooLarge"},
        AnswerFault{"SizeLimit", 400, "", "profile_size_limit", "ProfileTooLarge"},
        AnswerFault{"SamplesLimit", 400, "", "samples_limit", "ProfileTooLarge"},
        AnswerFault{"SamplesCount", 400, "", "samples count limit", "ProfileTooLarge"},
        AnswerFault{"LabelNames", 400, "", "max_label_names_per_series", "BackendRefused"},
        AnswerFault{"LabelNameLength", 400, "", "label_name_too_long", "BackendRefused"},
        AnswerFault{"LabelValueLength", 400, "", "label_value_too_long", "BackendRefused"},
        AnswerFault{"DuplicateLabel", 400, "", "duplicate_label_names", "BackendRefused"},
        AnswerFault{"InvalidLabels", 400, "", "invalid_labels", "BackendRefused"},
        AnswerFault{"MissingLabels", 400, "", "missing_labels", "BackendRefused"},
        AnswerFault{"MetricName", 400, "", "invalid metric name", "BackendRefused"},
        AnswerFault{"ServiceName", 400, "", "service name is not provided", "BackendRefused"},
        AnswerFault{"SampleType", 400, "", "sample type contains -", "BackendRefused"},
        AnswerFault{"Malformed", 400, "", "malformed_profile", "BackendRefused"},
        AnswerFault{"NoProfiles", 400, "", "no profiles received", "BackendRefused"},
        AnswerFault{"BodyLimit", 413, "", "", "ProfileTooLarge"},
        AnswerFault{"Conflict", 409, "", "", "BackendRefused"},
        AnswerFault{"Unprocessable", 422, "", "", "BackendRefused"},
        AnswerFault{"Accepted", 202, "", "", "BackendRefused"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(BackendFaults, ARefusedConnectionIsTriedAgain) {
  // Bound, so that the port is nobody else's, and not listening yet.
  const UniqueFd port(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(port.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(port.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  Metrics metrics;
  Pusher pusher(kOptions, nullptr, &metrics, nullptr);
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  ASSERT_TRUE(pusher.SetBackends({{"main", url}}).ok());
  pusher.Push(Profile());
  const auto retries = metrics.Counter("flamefleet_agent_push_retries_total",
                                       "Pushes that failed and will be tried again.");
  ASSERT_TRUE(WaitUntil([&] { return retries.Value() >= 2; }));
  ASSERT_EQ(::listen(port.get(), 8), 0);
  const RawSocket socket(::accept4(port.get(), nullptr, nullptr, SOCK_CLOEXEC));
  AnswerWell(socket);
  EXPECT_TRUE(pusher.Drain(seconds(60)));
}

TEST(BackendFaults, AServerThatReadsNothingIsGivenUpAndAskedAgain) {
  Metrics metrics;
  const auto retries = metrics.Counter("flamefleet_agent_push_retries_total",
                                       "Pushes that failed and will be tried again.");
  std::atomic<int> connections = 0;
  RawServer server([&](RawSocket& socket) {
    if (connections++ == 0) {
      EXPECT_TRUE(WaitUntil([&] { return retries.Value() >= 1; }));
    } else {
      AnswerWell(socket);
    }
  });
  Pusher pusher(kOptions, nullptr, &metrics, nullptr);
  ASSERT_TRUE(pusher.SetBackends({{"main", server.Url()}}).ok());
  FinishedProfile large = Profile();  // than what sockets buffer
  large.pprof.resize(3 << 20);
  pusher.Push(large);
  EXPECT_TRUE(pusher.Drain(seconds(60)));
  EXPECT_GE(connections, 2);
}

TEST(BackendFaults, TlsToAServerWithoutTlsIsTriedAgain) {
  FakeBackend plain;
  Metrics metrics;
  Pusher pusher(kOptions, nullptr, &metrics, nullptr);
  ASSERT_TRUE(
      pusher.SetBackends({{"main", "https://127.0.0.1:" + std::to_string(plain.port())}}).ok());
  pusher.Push(Profile());
  const auto retries = metrics.Counter("flamefleet_agent_push_retries_total",
                                       "Pushes that failed and will be tried again.");
  EXPECT_TRUE(WaitUntil([&] { return retries.Value() >= 2; }));
  ASSERT_TRUE(pusher.SetBackends({{"main", plain.Url()}}).ok());
  EXPECT_TRUE(pusher.Drain(seconds(60)));
}

TEST(BackendFaults, ACorruptProfileIsGivenUpAndOthersPassItMeanwhile) {
  const auto is_corrupt = [](const HttpServerRequest& request) {
    return FakeBackend::SeriesOf(request).samples(0).raw_profile() == "pprof 0";
  };
  std::unique_ptr<FakeBackend> backend;
  backend = std::make_unique<FakeBackend>([&](int number) {
    const bool corrupt = is_corrupt(backend->Requests().at(static_cast<size_t>(number)));
    return HttpServerResponse{.status = corrupt ? 500 : 200};
  });
  Metrics metrics;
  Pusher pusher(kOptions, nullptr, &metrics, nullptr);
  ASSERT_TRUE(pusher.SetBackends({{"main", backend->Url()}}).ok());
  for (int i = 0; i < 20; ++i)
    pusher.Push(Profile(i));
  EXPECT_TRUE(pusher.Drain(seconds(60)));
  size_t corrupt = 0;
  for (const HttpServerRequest& request : backend->Requests())
    corrupt += is_corrupt(request) ? 1 : 0;
  EXPECT_EQ(corrupt, static_cast<size_t>(kMaxServerErrors));
  EXPECT_EQ(backend->Count(), 19U + static_cast<size_t>(kMaxServerErrors));
}

TEST(BackendFaults, ASlowBackendIsNotSentMoreThanItsLimit) {
  FakeBackend backend;
  Metrics metrics;
  Pusher pusher(kOptions, nullptr, &metrics, nullptr);
  ASSERT_TRUE(
      pusher.SetBackends({{.name = "main", .endpoint = backend.Url(), .bytes_per_second = 100'000}})
          .ok());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) {
    FinishedProfile profile = Profile(i);
    profile.pprof.resize(100'000);
    pusher.Push(profile);
  }
  ASSERT_TRUE(pusher.Drain(seconds(60)));
  // One second's worth at once, the rest as the rate allows.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, seconds(2));
}

}  // namespace
}  // namespace flamefleet::agent
