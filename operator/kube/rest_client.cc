// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/rest_client.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/thread.h"

namespace flamefleet {
namespace {

// The error body of a refused list or watch: a Status, never large.
constexpr size_t kMaxErrorBodyBytes = 64 << 10;

constexpr const char* kJsonType = "application/json";
constexpr const char* kProtobufType = "application/vnd.kubernetes.protobuf";

constexpr std::array kMethods = {"GET", "POST", "PUT", "PATCH", "DELETE"};
// Label values of rest_client_requests_total; whatever else an API server may say is "other", no
// answer at all is "<error>" as in client-go.
constexpr std::array kCodes = {"200", "201", "400", "401", "403", "404",   "409",    "410",
                               "422", "429", "500", "503", "504", "other", "<error>"};

std::string HostOf(const std::string& base_url) {
  const size_t scheme = base_url.find("://");
  return scheme == std::string::npos ? base_url : base_url.substr(scheme + 3);
}

std::string Describe(const char* verb, const Resource& resource, const std::string& ns,
                     const std::string& name) {
  const std::string owner = resource.namespaced ? ns + "/" : std::string();
  return std::string(verb) + " " + std::string(resource.kind) + " " + owner + name;
}

Result<Encoding> EncodingOf(const HttpResponse& head) {
  const std::string type = head.Header("content-type");
  if (type.starts_with(kProtobufType)) return Encoding::kProtobuf;
  if (type.starts_with(kJsonType)) return Encoding::kJson;
  return DataLossError("the answer has content type \"" + type + "\"");
}

bool AsksToRetry(const ApiError& error) {
  return error.retry_after && (error.http_status == 429 || error.http_status >= 500);
}

}  // namespace

struct RestClient::Counters {
  Counters(const std::string& host, Metrics& metrics)
      : retries(metrics.Counter("rest_client_request_retries_total",
                                "Requests sent again because the API server asked for it.",
                                {{"host", host}})) {
    for (const char* method : kMethods) {
      for (const char* code : kCodes) {
        requests.try_emplace(
            {method, code}, metrics.Counter("rest_client_requests_total",
                                            "Requests to the API server by method and status code.",
                                            {{"method", method}, {"code", code}, {"host", host}}));
      }
      durations.try_emplace(
          method,
          metrics.Histogram("rest_client_request_duration_seconds",
                            "Time from a request to its complete answer; watches are not in it.",
                            {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 5, 15, 30}, {{"method", method}}));
    }
  }

  void Count(const std::string& method, const Result<HttpResponse>& response) {
    std::string code = response.ok() ? std::to_string(response->status) : "<error>";
    if (std::find(kCodes.begin(), kCodes.end(), code) == kCodes.end()) code = "other";
    requests.at({method, code}).Increment();
  }

  std::map<std::pair<std::string, std::string>, CounterMetric> requests;
  std::map<std::string, HistogramMetric> durations;
  CounterMetric retries;
};

Result<std::unique_ptr<RestClient>> RestClient::Create(const ClientConfig& config,
                                                       const Clock& clock, Metrics& metrics,
                                                       RestClientOptions options) {
  FF_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, Connection::Create(config, clock));
  return std::unique_ptr<RestClient>(
      new RestClient(config, std::move(connection), clock, metrics, std::move(options)));
}

RestClient::RestClient(const ClientConfig& config, std::unique_ptr<Connection> connection,
                       const Clock& clock, Metrics& metrics, RestClientOptions options)
    : options_(std::move(options)),
      path_prefix_(config.path_prefix),
      connection_(std::move(connection)),
      clock_(clock),
      counters_(std::make_unique<Counters>(HostOf(config.base_url), metrics)) {}

RestClient::~RestClient() = default;

HttpRequest RestClient::NewRequest(const std::string& method, const std::string& path_and_query) {
  HttpRequest request;
  request.method = method;
  request.target = path_prefix_ + path_and_query;
  request.headers = {{"Accept", kJsonType}, {"User-Agent", options_.user_agent}};
  request.idle_timeout = request.total_timeout = options_.timeout;
  return request;
}

Result<std::shared_ptr<HttpClient>> RestClient::Authorize(HttpRequest& request) {
  FF_ASSIGN_OR_RETURN(Connection::Access access, connection_->Acquire());
  if (!access.authorization.empty()) request.headers["Authorization"] = access.authorization;
  return std::move(access.http);
}

RestClient::StreamResult RestClient::Judge(const HttpResponse& response,
                                           const std::string& operation) {
  if (response.status >= 200 && response.status < 300) return {};
  if (response.status == 401) connection_->Refused();
  ApiError error = DecodeApiError(response.status, response.Header("retry-after"), response.body);
  return {error.ToStatus(operation), std::move(error)};
}

RestClient::Answer RestClient::CallOnce(HttpRequest& request, const std::string& operation,
                                        const std::stop_token& stop) {
  if (options_.may_write && request.method != "GET") {
    if (const Status allowed = options_.may_write(); !allowed.ok()) {
      return {{Annotate(allowed, operation), {}}, {}};
    }
  }
  const auto http = Authorize(request);
  if (!http.ok()) return {{Annotate(http.status(), operation), {}}, {}};
  const int64_t started_ns = clock_.MonotonicNanos();
  Result<HttpResponse> response = (*http)->Send(request, stop);
  counters_->Count(request.method, response);
  counters_->durations.at(request.method)
      .Observe(static_cast<double>(clock_.MonotonicNanos() - started_ns) / 1e9);
  if (!response.ok()) {
    connection_->Failed();
    return {{Annotate(response.status(), operation), {}}, {}};
  }
  StreamResult result = Judge(*response, operation);
  return {std::move(result), std::move(response->body)};
}

Result<std::string> RestClient::Call(HttpRequest request, const std::string& operation,
                                     const std::stop_token& stop) {
  for (int tries = 1;; ++tries) {
    Answer answer = CallOnce(request, operation, stop);
    if (answer.result.status.ok()) return std::move(answer.body);
    const auto& error = answer.result.api_error;
    if (tries >= options_.max_tries || !error || !AsksToRetry(*error)) return answer.result.status;
    const auto wait = std::min<std::chrono::seconds>(*error->retry_after, kMaxRetryAfter);
    if (WaitForStop(stop, wait)) return CancelledError(operation + ": stopped");
    counters_->retries.Increment();
  }
}

Result<std::string> RestClient::Get(const Resource& resource, const std::string& ns,
                                    const std::string& name, const std::stop_token& stop) {
  HttpRequest request = NewRequest("GET", ObjectPath(resource, ns, name));
  return Call(std::move(request), Describe("get", resource, ns, name), stop);
}

Result<std::string> RestClient::GetPath(const std::string& path_and_query,
                                        const std::map<std::string, std::string>& headers,
                                        const std::stop_token& stop) {
  HttpRequest request = NewRequest("GET", path_and_query);
  request.headers.insert(headers.begin(), headers.end());
  request.headers["Accept"] = "*/*";
  return Call(std::move(request), "get " + path_and_query.substr(0, path_and_query.find('?')),
              stop);
}

Result<std::string> RestClient::CreateObject(const Resource& resource, const std::string& ns,
                                             const std::string& name, const std::string& body,
                                             const std::stop_token& stop) {
  HttpRequest request = NewRequest("POST", CollectionPath(resource, ns));
  request.headers["Content-Type"] = kJsonType;
  request.body = body;
  return Call(std::move(request), Describe("create", resource, ns, name), stop);
}

Result<std::string> RestClient::ReplaceObject(const Resource& resource, const std::string& ns,
                                              const std::string& name, const std::string& body,
                                              const std::stop_token& stop) {
  HttpRequest request = NewRequest("PUT", ObjectPath(resource, ns, name));
  request.headers["Content-Type"] = kJsonType;
  request.body = body;
  return Call(std::move(request), Describe("replace", resource, ns, name), stop);
}

Result<std::string> RestClient::Apply(const ApplyRequest& apply, const std::stop_token& stop) {
  std::string path = ObjectPath(apply.resource, apply.ns, apply.name);
  if (apply.status) path += "/status";
  path += "?force=true&fieldManager=" + UrlEncode(apply.field_manager);
  HttpRequest request = NewRequest("PATCH", path);
  request.headers["Content-Type"] = "application/apply-patch+yaml";
  request.body = apply.body;
  const char* verb = apply.status ? "apply status of" : "apply";
  return Call(std::move(request), Describe(verb, apply.resource, apply.ns, apply.name), stop);
}

Status RestClient::Delete(const Resource& resource, const std::string& ns, const std::string& name,
                          const std::stop_token& stop) {
  HttpRequest request =
      NewRequest("DELETE", ObjectPath(resource, ns, name) + "?propagationPolicy=Background");
  const Status status =
      Call(std::move(request), Describe("delete", resource, ns, name), stop).status();
  return status.code() == StatusCode::kNotFound ? OkStatus() : status;
}

RestClient::StreamResult RestClient::Stream(const StreamRequest& stream,
                                            const EncodingHandler& on_encoding,
                                            const HttpClient::BodyHandler& on_body,
                                            const std::stop_token& stop) {
  const std::string operation =
      stream.verb + " " + stream.path_and_query.substr(0, stream.path_and_query.find('?'));
  HttpRequest request = NewRequest("GET", stream.path_and_query);
  const auto http = Authorize(request);
  if (!http.ok()) return {Annotate(http.status(), operation), {}};
  request.idle_timeout = stream.idle_timeout;
  request.total_timeout = stream.total_timeout;
  if (stream.protobuf) {
    request.headers["Accept"] = std::string(kProtobufType) + ", " + kJsonType;
  }
  if (stream.metadata) {
    request.headers["Accept"] = std::string(kJsonType) + ";as=PartialObjectMetadata" +
                                (stream.verb == "list" ? "List" : "") + ";g=meta.k8s.io;v=v1";
  }

  bool accepted = false;
  Status readable = OkStatus();
  std::string error_body;
  Result<HttpResponse> response = (*http)->Stream(
      request,
      [&](const HttpResponse& head) {
        accepted = head.status >= 200 && head.status < 300;
        if (!accepted) return;
        const Result<Encoding> encoding = EncodingOf(head);
        readable = encoding.status();
        if (encoding.ok()) on_encoding(*encoding);
      },
      [&](std::string_view piece) {
        if (!readable.ok()) return readable;
        if (accepted) return on_body(piece);
        error_body +=
            piece.substr(0, kMaxErrorBodyBytes - std::min(kMaxErrorBodyBytes, error_body.size()));
        return OkStatus();
      },
      stop);
  counters_->Count("GET", response);
  if (!response.ok()) {
    connection_->Failed();
    return {Annotate(response.status(), operation), {}};
  }
  if (!readable.ok()) return {Annotate(readable, operation), {}};  // and it had no body
  response->body = std::move(error_body);
  return Judge(*response, operation);
}

}  // namespace flamefleet
