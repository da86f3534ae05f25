// SPDX-License-Identifier: Apache-2.0
// What a backend or a pod may answer, by the bytes of an HTTP answer over a real connection: the
// fetch ends, within its bounds, and what is made of the answer can be told to people.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "agent/push/outcome.h"
#include "agent/scrape/scrape_job.h"
#include "base/fd.h"
#include "base/http/fetch.h"
#include "base/status.h"
#include "base/utf8.h"

namespace {

using flamefleet::UniqueFd;

constexpr size_t kMaxBody = 64 << 10;

struct Listener {
  UniqueFd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  uint16_t port = 0;

  Listener() {
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    FF_CHECK(::bind(fd.get(), any, size) == 0 && ::listen(fd.get(), 8) == 0 &&
             ::getsockname(fd.get(), any, &size) == 0);
    port = ntohs(address.sin_port);
  }
};

void Answer(int listener, std::string_view bytes) {
  const UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  char request[4096];
  if (::recv(socket.get(), request, sizeof request, 0) <= 0) return;
  (void)!::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  static const Listener listener;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::jthread server([&] { Answer(listener.fd.get(), bytes); });
  const FetchOptions options = {
      .address = "127.0.0.1", .port = listener.port, .max_body_bytes = kMaxBody};
  const Result<FetchResponse> response = Fetch(options, {});
  server.join();
  if (!response.ok()) {
    FF_CHECK(!FailureOfFetch(response.status()).reason.empty());
    return 0;
  }
  FF_CHECK(response->body.size() <= kMaxBody);
  if (const auto target = RedirectTarget(options, *response)) FF_CHECK(target->starts_with('/'));
  FF_CHECK(!FailureOfAnswer(*response).message.empty());
  HttpResponse answer = {.status = response->status, .body = response->body};
  answer.headers["retry-after"] = response->location;
  answer.headers["content-type"] = response->body.substr(0, 32);
  const Outcome outcome = JudgeAnswer(answer, {.server_errors = 1, .bytes = 2 << 20});
  FF_CHECK(outcome.kind == Outcome::Kind::kDelivered || !outcome.reason.empty());
  FF_CHECK(ToUtf8(outcome.message) == outcome.message && outcome.retry_after <= kMaxRetryAfter);
  JudgeCall(InternalError(response->body), {});
  return 0;
}
