// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fault_proxy.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <list>
#include <set>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"

namespace flamefleet {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Tls = asio::ssl::stream<tcp::socket>;

constexpr size_t kMaxHeadBytes = 64 << 10;

std::shared_ptr<asio::ssl::context> ServerContext(const FaultProxy::Certificate& own) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  context->use_certificate_chain(asio::buffer(own.cert_pem));
  context->use_private_key(asio::buffer(own.key_pem), asio::ssl::context::pem);
  return context;
}

std::shared_ptr<asio::ssl::context> ClientContext(const HttpTlsOptions& tls, bool certificate) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  context->set_verify_mode(asio::ssl::verify_peer);
  context->add_certificate_authority(asio::buffer(tls.ca_pem));
  if (certificate) {
    context->use_certificate_chain(asio::buffer(tls.client_cert_pem));
    context->use_private_key(asio::buffer(tls.client_key_pem), asio::ssl::context::pem);
  }
  return context;
}

struct Request {
  std::string method;
  std::string target;
  std::string headers;  // each with its line end
  std::string body;
  bool has_token = false;
};

bool ReadRequest(Tls& client, Request& request) {
  error_code error;
  std::string buffer;
  const size_t head =
      asio::read_until(client, asio::dynamic_buffer(buffer, kMaxHeadBytes), "\r\n\r\n", error);
  if (error) return false;
  const std::string text = buffer.substr(0, head - 2);
  request.body = buffer.substr(head);
  const size_t line_end = text.find("\r\n");
  const size_t first = text.find(' ');
  const size_t second = text.find(' ', first + 1);
  request.method = text.substr(0, first);
  request.target = text.substr(first + 1, second - first - 1);
  size_t body_size = 0;
  for (size_t at = line_end + 2; at < text.size();) {
    const size_t end = text.find("\r\n", at);
    const std::string line = text.substr(at, end - at);
    at = end + 2;
    // Not every client has a space after the colon.
    if (line.starts_with("Content-Length:")) body_size = std::stoul(line.substr(15));
    if (line.starts_with("Authorization:")) request.has_token = true;
    if (!line.starts_with("Connection:")) request.headers += line + "\r\n";
  }
  if (request.body.size() < body_size) {
    const size_t there = request.body.size();
    request.body.resize(body_size);
    asio::read(client, asio::buffer(request.body.data() + there, body_size - there), error);
  }
  return !error;
}

}  // namespace

class FaultProxy::Impl {
 public:
  Impl(uint16_t port, const HttpTlsOptions& upstream, const Certificate& own)
      : server_(asio::ip::address_v4::loopback(), port),
        acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        with_certificate_(ClientContext(upstream, true)),
        without_certificate_(ClientContext(upstream, false)),
        own_(ServerContext(own)) {
    thread_ = StartThread("fault-proxy", [this](const std::stop_token& stop) { Run(stop); });
  }
  ~Impl() {
    thread_.request_stop();
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);  // ends accept()
    thread_.join();
    CutAll();
    connections_.clear();
  }

  uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void SetScript(Script script) {
    MutexLock lock(&mutex_);
    script_ = std::move(script);
  }
  void SetCertificate(const Certificate& own) {
    MutexLock lock(&mutex_);
    own_ = ServerContext(own);
  }
  void CutAll() {
    MutexLock lock(&mutex_);
    for (const int fd : open_)
      ::shutdown(fd, SHUT_RDWR);
  }
  std::vector<std::string> Targets() const {
    MutexLock lock(&mutex_);
    return targets_;
  }

 private:
  // A descriptor that CutAll reaches.
  class Open {
   public:
    Open(Impl& impl, int fd) : impl_(impl), fd_(fd) {
      MutexLock lock(&impl_.mutex_);
      impl_.open_.insert(fd_);
    }
    ~Open() {
      MutexLock lock(&impl_.mutex_);
      impl_.open_.erase(fd_);
    }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    Impl& impl_;
    const int fd_;
  };

  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      error_code error;
      tcp::socket socket = acceptor_.accept(error);
      if (error) continue;
      // Its thread ends with the connection; the list, with the proxy.
      auto shared = std::make_shared<tcp::socket>(std::move(socket));
      connections_.push_back(StartThread(
          "fault-proxy-c", [this, shared](const std::stop_token&) { Serve(std::move(*shared)); }));
    }
  }

  void Serve(tcp::socket socket) {
    std::shared_ptr<asio::ssl::context> context;
    {
      MutexLock lock(&mutex_);
      context = own_;
    }
    Tls client(std::move(socket), *context);
    const Open open(*this, client.next_layer().native_handle());
    error_code error;
    client.handshake(asio::ssl::stream_base::server, error);
    Request request;
    if (error || !ReadRequest(client, request)) return;
    const Fault fault = FaultOf(request.target);
    if (fault.kind == Fault::Kind::kPass) return Pass(client, request, fault);
    if (fault.kind == Fault::Kind::kAnswer) {
      asio::write(client, asio::buffer(fault.answer), error);
      if (!fault.stay_open) return;
    }
    std::array<char, 1> byte{};
    client.read_some(asio::buffer(byte), error);  // until the client gives up
  }

  Fault FaultOf(const std::string& target) {
    MutexLock lock(&mutex_);
    targets_.push_back(target);
    return script_ ? script_(target) : Fault{};
  }

  void Pass(Tls& client, const Request& request, const Fault& fault) {
    Tls server(io_, request.has_token ? *without_certificate_ : *with_certificate_);
    error_code error;
    server.next_layer().connect(server_, error);
    if (error) return;
    const Open open(*this, server.next_layer().native_handle());
    server.handshake(asio::ssl::stream_base::client, error);
    if (error) return;
    const std::string& target = fault.target.empty() ? request.target : fault.target;
    const std::string text = request.method + " " + target + " HTTP/1.1\r\n" + request.headers +
                             "Connection: close\r\n\r\n" + request.body;
    asio::write(server, asio::buffer(text), error);
    std::array<char, 16 << 10> buffer;
    for (size_t sent = 0; !error;) {
      size_t size = server.read_some(asio::buffer(buffer), error);
      const bool cut = fault.cut_after > 0 && sent + size >= fault.cut_after;
      if (cut) size = fault.cut_after - sent;
      error_code write_error;
      asio::write(client, asio::buffer(buffer.data(), size), write_error);
      if (cut || write_error) return;
      sent += size;
    }
    if (error == asio::error::eof) client.shutdown(error);
  }

  asio::io_context io_;
  const tcp::endpoint server_;
  tcp::acceptor acceptor_;
  const std::shared_ptr<asio::ssl::context> with_certificate_;
  const std::shared_ptr<asio::ssl::context> without_certificate_;
  mutable Mutex mutex_;
  std::shared_ptr<asio::ssl::context> own_ FF_GUARDED_BY(mutex_);
  Script script_ FF_GUARDED_BY(mutex_);
  std::vector<std::string> targets_ FF_GUARDED_BY(mutex_);
  std::set<int> open_ FF_GUARDED_BY(mutex_);
  std::list<std::jthread> connections_;  // of thread_, then of the destructor
  std::jthread thread_;
};

FaultProxy::FaultProxy(uint16_t port, const HttpTlsOptions& upstream, const Certificate& own)
    : impl_(std::make_unique<Impl>(port, upstream, own)) {}

FaultProxy::~FaultProxy() = default;

uint16_t FaultProxy::port() const {
  return impl_->port();
}

void FaultProxy::SetScript(Script script) {
  impl_->SetScript(std::move(script));
}

void FaultProxy::SetCertificate(const Certificate& own) {
  impl_->SetCertificate(own);
}

void FaultProxy::CutAll() {
  impl_->CutAll();
}

std::vector<std::string> FaultProxy::Targets() const {
  return impl_->Targets();
}

std::string FaultProxy::Answer(int status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) + " Fault\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
}

}  // namespace flamefleet
