// SPDX-License-Identifier: Apache-2.0
// Boost 1.74 uses std::exchange without including it.
#include <utility>

#include "base/http/server_message.h"

#include <algorithm>
#include <cctype>

#include "base/http/url.h"

namespace flamefleet {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

std::string LowerCase(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// A header value with a line break would let whoever chose it write headers of ours.
bool IsSafeHeader(const std::string& value) {
  return std::none_of(value.begin(), value.end(),
                      [](unsigned char c) { return c < ' ' && c != '\t'; });
}

}  // namespace

HttpServerResponse ErrorAnswer(http::status status, const std::string& message) {
  return {.status = static_cast<int>(status), .body = message + "\n"};
}

Result<HttpServerRequest> ConvertRequest(RequestParser& parser) {
  auto& message = parser.get();
  HttpServerRequest request;
  // A HEAD is answered as the GET would be, without the body.
  request.method =
      message.method() == http::verb::head ? "GET" : std::string(message.method_string());
  const std::string target(message.target());
  if (target.empty() || target[0] != '/') {
    return InvalidArgumentError("request target '" + target.substr(0, 100) + "': want a path");
  }
  const size_t question = target.find('?');
  FF_ASSIGN_OR_RETURN(request.path, UrlDecode(std::string_view(target).substr(0, question)));
  if (question != std::string::npos) {
    FF_ASSIGN_OR_RETURN(request.query, ParseQuery(std::string_view(target).substr(question + 1)));
  }
  for (const auto& field : message) {
    std::string& value = request.headers[LowerCase(std::string(field.name_string()))];
    if (!value.empty()) value += ", ";
    value += std::string(field.value());
  }
  request.body = std::move(message.body());
  return request;
}

HttpServerResponse AnswerTo(const error_code& error, const HttpServerOptions& options) {
  if (error == http::error::body_limit) {
    return ErrorAnswer(
        http::status::payload_too_large,
        "request body is larger than " + std::to_string(options.max_body_bytes) + " bytes");
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return ErrorAnswer(
        http::status::request_header_fields_too_large,
        "request header is larger than " + std::to_string(options.max_header_bytes) + " bytes");
  }
  if (error == NoRoomForBody()) {
    HttpServerResponse answer = ErrorAnswer(http::status::service_unavailable,
                                            "too many large requests at once; try again");
    answer.headers["Retry-After"] = "1";
    return answer;
  }
  const bool malformed = error.category() == make_error_code(http::error::bad_method).category() &&
                         error != http::error::end_of_stream &&
                         error != http::error::partial_message;
  if (malformed) return ErrorAnswer(http::status::bad_request, "not HTTP/1.1: " + error.message());
  return {.status = 0};
}

ResponseMessage ConvertResponse(HttpServerResponse response, unsigned version, bool keep_alive) {
  const bool safe =
      std::all_of(response.headers.begin(), response.headers.end(),
                  [](const auto& h) { return IsSafeHeader(h.first) && IsSafeHeader(h.second); });
  if (!safe || !IsSafeHeader(response.content_type)) {
    response = ErrorAnswer(http::status::internal_server_error, "internal error");
  }
  ResponseMessage message(static_cast<http::status>(response.status), version);
  for (const auto& [name, value] : response.headers)
    message.set(name, value);
  if (!response.content_type.empty()) {
    message.set(http::field::content_type, response.content_type);
  }
  message.keep_alive(keep_alive);
  message.body() = std::move(response.body);
  message.prepare_payload();
  return message;
}

}  // namespace flamefleet
