// SPDX-License-Identifier: Apache-2.0
// Exchange: hands one response from cpprestsdk's threads to the thread that called HttpClient.
//
// The library writes the body into an own write-only stream buffer; each write stays unfinished
// until the caller's handler has taken the piece, which is the back-pressure: the library reads no
// further, nothing is copied, none of its threads waits.
//
// Thread: On...() from the library's threads, Run from the caller. Shared by both, so that either
// may end first.
// Bounds: one piece (at most the library's 64 KiB) waits.
#pragma once

#include <cpprest/http_msg.h>
#include <pplx/pplxtasks.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/http/client.h"

namespace flamefleet {

class Exchange {
 public:
  struct Limits {
    std::chrono::milliseconds idle;
    std::chrono::milliseconds total;  // 0: none
  };

  // Takes the response until its end, an error, a time limit or `stop`. `head` is filled before
  // `on_head` is called.
  Status Run(const Limits& limits, const std::stop_token& stop, HttpResponse* head,
             const HttpClient::HeadHandler& on_head, const HttpClient::BodyHandler& on_body);

  void OnHead(HttpResponse head);
  // Finished when the piece is taken, failed when nobody takes it any more. `data` stays valid
  // until then.
  pplx::task<size_t> OnPiece(std::string_view data);
  void OnEnd(Status status);

  // The stream buffer that calls OnPiece.
  static concurrency::streams::streambuf<uint8_t> BodyBuffer(std::shared_ptr<Exchange> exchange);

 private:
  struct Piece {
    std::string_view data;
    pplx::task_completion_event<size_t> taken;
  };
  enum class Wake { kProgress, kTimeout, kStop };

  Wake Await(const Limits& limits, const std::stop_token& stop);
  Status TakePiece(const HttpClient::BodyHandler& on_body);
  void Close();

  // Only in Run.
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point last_progress_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  bool closed_ = false;
  bool head_taken_ = false;
  std::optional<HttpResponse> head_;
  std::optional<Piece> piece_;
  std::optional<Status> end_;
};

}  // namespace flamefleet
