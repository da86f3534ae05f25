// SPDX-License-Identifier: Apache-2.0
#include "store/http/querier_handler.h"

#include <google/protobuf/util/json_util.h>

#include "base/log.h"
#include "proto/pprof/profile.pb.h"
#include "store/http/connect.h"
#include "store/http/querier_methods.h"

namespace flamefleet::store {
namespace {

constexpr char kPrefix[] = "/querier.v1.QuerierService/";
constexpr size_t kMaxRequestBytes = 1 << 20;

HttpServerResponse ErrorAnswer(const Status& error) {
  const std::string message = ErrorMessage(error);
  switch (error.code()) {
    case StatusCode::kInvalidArgument:
      return ConnectError(400, "invalid_argument", message);
    case StatusCode::kFailedPrecondition:
      return ConnectError(400, "failed_precondition", message);
    case StatusCode::kUnimplemented:
      return ConnectError(501, "unimplemented", message);
    case StatusCode::kResourceExhausted:
      return ConnectError(422, "resource_exhausted", message);
    case StatusCode::kDeadlineExceeded:
      return ConnectError(422, "deadline_exceeded", message);
    case StatusCode::kUnavailable: {
      HttpServerResponse response = ConnectError(503, "unavailable", message);
      response.headers["Retry-After"] = "1";
      return response;
    }
    default:
      Log(LogLevel::kError, "a query failed", {{"error", error}});
      return ConnectError(500, "internal", message);
  }
}

template <typename Message>
Status Parse(const std::string& body, PushEncoding encoding, Message* message) {
  if (encoding == PushEncoding::kProto) {
    if (message->ParseFromString(body)) return OkStatus();
    return InvalidArgumentError("the body is not the request of this method");
  }
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(body.data(), body.size()), message, options);
  if (parsed.ok()) return OkStatus();
  return InvalidArgumentError("the body is not the request of this method in JSON: " +
                              std::string(parsed.message().data(), parsed.message().size()));
}

Result<HttpServerResponse> Answer(const google::protobuf::Message& message, PushEncoding encoding) {
  HttpServerResponse response{.content_type = "application/proto"};
  if (encoding == PushEncoding::kProto) {
    response.body = message.SerializeAsString();
    return response;
  }
  response.content_type = "application/json";
  const auto written = google::protobuf::util::MessageToJsonString(message, &response.body);
  if (!written.ok()) return InternalError("the answer cannot be written as JSON");
  return response;
}

Result<HttpServerResponse> Answer(const pprof::Profile& profile, PushEncoding encoding) {
  std::string bytes;
  if (!profile.sample_types.empty()) pprof::Encode(profile, &bytes);
  if (encoding == PushEncoding::kProto) {
    return HttpServerResponse{.content_type = "application/proto", .body = std::move(bytes)};
  }
  perftools::profiles::Profile message;
  if (!message.ParseFromString(bytes)) return InternalError("the merge is not a pprof");
  return Answer(message, encoding);
}

template <typename Request, typename Response>
Result<HttpServerResponse> Call(Result<Response> (*method)(QueryEngine*, const Request&),
                                QueryEngine* engine, const std::string& body,
                                PushEncoding encoding) {
  Request request;
  FF_RETURN_IF_ERROR(Parse(body, encoding, &request));
  const QueryTurn turn(engine);
  FF_RETURN_IF_ERROR(turn.status());
  FF_ASSIGN_OR_RETURN(const Response response, method(engine, request));
  return Answer(response, encoding);
}

Result<HttpServerResponse> Dispatch(const std::string& method, QueryEngine* engine,
                                    const std::string& body, PushEncoding encoding) {
  if (method == "ProfileTypes") return Call(&querier::ProfileTypes, engine, body, encoding);
  if (method == "LabelNames") return Call(&querier::LabelNames, engine, body, encoding);
  if (method == "LabelValues") return Call(&querier::LabelValues, engine, body, encoding);
  if (method == "Series") return Call(&querier::Series, engine, body, encoding);
  if (method == "SelectMergeStacktraces") {
    return Call(&querier::SelectMergeStacktraces, engine, body, encoding);
  }
  if (method == "SelectMergeProfile") {
    return Call(&querier::SelectMergeProfile, engine, body, encoding);
  }
  if (method == "SelectSeries") return Call(&querier::SelectSeries, engine, body, encoding);
  if (method == "Diff") return Call(&querier::Diff, engine, body, encoding);
  return UnimplementedError("this store has no " + std::string(kPrefix) + method.substr(0, 100));
}

}  // namespace

bool QuerierHandler::IsMine(const std::string& path) {
  return path.starts_with(kPrefix);
}

HttpServerResponse QuerierHandler::Handle(const HttpServerRequest& request) {
  if (std::optional<HttpServerResponse> refused = RefuseCall(request)) return *std::move(refused);
  const Result<std::string> body = ReadCall(request, kMaxRequestBytes);
  if (!body.ok()) {
    const bool too_large = body.status().code() == StatusCode::kResourceExhausted;
    return too_large ? ConnectError(413, "resource_exhausted", ErrorMessage(body.status()))
                     : ConnectError(400, "invalid_argument", ErrorMessage(body.status()));
  }
  Result<HttpServerResponse> response =
      Dispatch(request.path.substr(std::size(kPrefix) - 1), engine_, *body, EncodingOf(request));
  return response.ok() ? *std::move(response) : ErrorAnswer(response.status());
}

}  // namespace flamefleet::store
