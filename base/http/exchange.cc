// SPDX-License-Identifier: Apache-2.0
#include "base/http/exchange.h"

#include <cpprest/astreambuf.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace flamefleet {
namespace {

using Clock = std::chrono::steady_clock;

std::exception_ptr NobodyReads() {
  return std::make_exception_ptr(std::runtime_error("the response is no longer read"));
}

// The smallest write-only stream buffer: everything but _putn says "not supported".
class BodyStreamBuffer final
    : public concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  explicit BodyStreamBuffer(std::shared_ptr<Exchange> exchange)
      : streambuf_state_manager(std::ios_base::out), exchange_(std::move(exchange)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return kNoPosition; }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return kNoPosition; }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return kNoPosition;
  }
  bool acquire(uint8_t*&, size_t&) override { return false; }
  void release(uint8_t*, size_t) override {}

 protected:
  pplx::task<size_t> _putn(const uint8_t* data, size_t count) override {
    return exchange_->OnPiece({reinterpret_cast<const char*>(data), count});
  }
  pplx::task<int_type> _putc(uint8_t) override { return pplx::task_from_result(traits::eof()); }
  pplx::task<int_type> _bumpc() override { return pplx::task_from_result(traits::eof()); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return pplx::task_from_result(traits::eof()); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return pplx::task_from_result(traits::eof()); }
  pplx::task<int_type> _ungetc() override { return pplx::task_from_result(traits::eof()); }
  pplx::task<size_t> _getn(uint8_t*, size_t) override { return pplx::task_from_result<size_t>(0); }
  size_t _scopy(uint8_t*, size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}

 private:
  static constexpr int kNoPosition = -1;
  const std::shared_ptr<Exchange> exchange_;
};

}  // namespace

concurrency::streams::streambuf<uint8_t> Exchange::BodyBuffer(std::shared_ptr<Exchange> exchange) {
  return concurrency::streams::streambuf<uint8_t>(
      std::make_shared<BodyStreamBuffer>(std::move(exchange)));
}

void Exchange::OnHead(HttpResponse head) {
  const std::lock_guard lock(mutex_);
  head_ = std::move(head);
  changed_.notify_one();
}

pplx::task<size_t> Exchange::OnPiece(std::string_view data) {
  const std::lock_guard lock(mutex_);
  if (closed_) return pplx::task_from_exception<size_t>(NobodyReads());
  piece_ = Piece{data, {}};
  changed_.notify_one();
  return pplx::task<size_t>(piece_->taken);
}

void Exchange::OnEnd(Status status) {
  const std::lock_guard lock(mutex_);
  end_ = std::move(status);
  changed_.notify_one();
}

Exchange::Wake Exchange::Await(const Limits& limits, const std::stop_token& stop) {
  auto deadline = last_progress_ + limits.idle;
  if (limits.total.count() > 0) deadline = std::min(deadline, started_ + limits.total);
  std::unique_lock lock(mutex_);
  const bool ready = changed_.wait_until(lock, stop, deadline, [this] {
    return (head_ && !head_taken_) || (piece_ && head_taken_) || end_;
  });
  if (stop.stop_requested()) return Wake::kStop;
  return ready ? Wake::kProgress : Wake::kTimeout;
}

Status Exchange::Run(const Limits& limits, const std::stop_token& stop, HttpResponse* head,
                     const HttpClient::HeadHandler& on_head,
                     const HttpClient::BodyHandler& on_body) {
  started_ = last_progress_ = Clock::now();
  Status status = OkStatus();
  for (bool ended = false; !ended && status.ok();) {
    const Wake wake = Await(limits, stop);
    if (wake == Wake::kStop) {
      status = CancelledError("stop was requested");
    } else if (wake == Wake::kTimeout) {
      const bool idle = Clock::now() < started_ + limits.total || limits.total.count() == 0;
      const auto limit = idle ? limits.idle : limits.total;
      status = DeadlineExceededError(std::string(idle ? "no answer for " : "not done in ") +
                                     std::to_string(limit.count()) + " ms");
    } else {
      std::unique_lock lock(mutex_);
      if (!head_taken_ && head_) {
        *head = *std::move(head_);
        head_taken_ = true;
        lock.unlock();
        if (on_head) on_head(*head);
      } else if (piece_) {
        lock.unlock();
        status = TakePiece(on_body);
      } else {
        status = *end_;
        ended = true;
      }
      last_progress_ = Clock::now();
    }
  }
  Close();
  return status;
}

Status Exchange::TakePiece(const HttpClient::BodyHandler& on_body) {
  // Nobody else touches piece_ until it is reset here.
  FF_RETURN_IF_ERROR(on_body(piece_->data));
  std::unique_lock lock(mutex_);
  const Piece piece = *std::move(piece_);
  piece_.reset();
  lock.unlock();
  piece.taken.set(piece.data.size());
  return OkStatus();
}

void Exchange::Close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  const std::optional<Piece> refused = std::exchange(piece_, std::nullopt);
  lock.unlock();
  if (refused) refused->taken.set_exception(NobodyReads());
}

}  // namespace flamefleet
