// SPDX-License-Identifier: Apache-2.0
// RestClient: requests to the API server, authenticated, counted, and with its errors decoded.
//
// Thread: any; calls block. Units: see HttpClient. Bounds: RestClientOptions::timeout for a whole
// call; max_tries for one that the server puts off with Retry-After (429, 5xx), each wait at most
// kMaxRetryAfter. Errors: those of ApiError::ToStatus, and kUnavailable, kDeadlineExceeded,
// kCancelled of the connection; that of may_write.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/http/client.h"
#include "base/metrics.h"
#include "base/status.h"
#include "operator/kube/api_error.h"
#include "operator/kube/client_config.h"
#include "operator/kube/connection.h"
#include "operator/kube/resource.h"
#include "operator/kube/server_object.h"

namespace flamefleet {

struct ApplyRequest {
  Resource resource;
  std::string ns;
  std::string name;
  std::string field_manager;
  std::string body;     // JSON of the full intent, apiVersion and kind included
  bool status = false;  // through the status subresource
};

struct RestClientOptions {
  std::chrono::milliseconds timeout{30'000};
  int max_tries = 4;
  // Asked right before a request that changes something is sent, each time that it is; an error
  // becomes the result of the call. Empty: always allowed.
  std::function<Status()> may_write;
  std::string user_agent = "flamefleet-operator/" FF_VERSION;
};

class RestClient {
 public:
  static constexpr std::chrono::seconds kMaxRetryAfter{10};

  static Result<std::unique_ptr<RestClient>> Create(const ClientConfig& config, const Clock& clock,
                                                    Metrics& metrics,
                                                    RestClientOptions options = {});
  ~RestClient();
  RestClient(const RestClient&) = delete;
  RestClient& operator=(const RestClient&) = delete;

  // The object's JSON.
  Result<std::string> Get(const Resource& resource, const std::string& ns, const std::string& name,
                          const std::stop_token& stop = {});
  // What any path answers: a list, or what is behind the proxy of a service.
  Result<std::string> GetPath(const std::string& path_and_query,
                              const std::map<std::string, std::string>& headers = {},
                              const std::stop_token& stop = {});

  // Creates `body`, whose name is `name`: kAlreadyExists when there is one. Replaces the object by
  // `body`: kAborted when metadata.resourceVersion of `body` is not its version any more. Both
  // return the resulting object's JSON.
  Result<std::string> CreateObject(const Resource& resource, const std::string& ns,
                                   const std::string& name, const std::string& body,
                                   const std::stop_token& stop = {});
  Result<std::string> ReplaceObject(const Resource& resource, const std::string& ns,
                                    const std::string& name, const std::string& body,
                                    const std::stop_token& stop = {});

  // Server-side apply, forced; the resulting object's JSON. What is equal already is not written.
  Result<std::string> Apply(const ApplyRequest& request, const std::stop_token& stop = {});

  // OK when it is gone already.
  Status Delete(const Resource& resource, const std::string& ns, const std::string& name,
                const std::stop_token& stop = {});

  // A list or a watch: a 2xx body goes to `on_body` as it arrives, after its encoding was told.
  struct StreamResult {
    Status status;
    std::optional<ApiError> api_error;  // when the server answered with an error
  };
  struct StreamRequest {
    std::string verb;  // "list" or "watch", for the metrics
    std::string path_and_query;
    bool protobuf = false;  // ask for it; a server that has it not answers in JSON
    bool metadata = false;  // of objects nothing but their metadata, in JSON
    std::chrono::milliseconds idle_timeout{30'000};
    std::chrono::milliseconds total_timeout{0};
  };
  using EncodingHandler = std::function<void(Encoding encoding)>;
  StreamResult Stream(const StreamRequest& request, const EncodingHandler& on_encoding,
                      const HttpClient::BodyHandler& on_body, const std::stop_token& stop);

 private:
  struct Answer {
    StreamResult result;
    std::string body;
  };
  struct Counters;

  RestClient(const ClientConfig& config, std::unique_ptr<Connection> connection, const Clock& clock,
             Metrics& metrics, RestClientOptions options);
  // What a request is sent with as of now; its authorization goes to `request`.
  Result<std::shared_ptr<HttpClient>> Authorize(HttpRequest& request);
  HttpRequest NewRequest(const std::string& method, const std::string& path_and_query);
  Answer CallOnce(HttpRequest& request, const std::string& operation, const std::stop_token& stop);
  Result<std::string> Call(HttpRequest request, const std::string& operation,
                           const std::stop_token& stop);
  StreamResult Judge(const HttpResponse& response, const std::string& operation);

  const RestClientOptions options_;
  const std::string path_prefix_;
  const std::unique_ptr<Connection> connection_;
  const Clock& clock_;
  const std::unique_ptr<Counters> counters_;
};

}  // namespace flamefleet
