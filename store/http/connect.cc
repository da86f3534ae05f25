// SPDX-License-Identifier: Apache-2.0
#include "store/http/connect.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/gzip.h"

namespace flamefleet::store {
namespace {

// "application/json; charset=utf-8" is the one parameter that Connect allows.
std::optional<PushEncoding> FindEncoding(std::string content_type) {
  std::erase(content_type, ' ');
  std::transform(content_type.begin(), content_type.end(), content_type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (content_type == "application/proto") return PushEncoding::kProto;
  if (content_type == "application/json" || content_type == "application/json;charset=utf-8") {
    return PushEncoding::kJson;
  }
  return std::nullopt;
}

}  // namespace

HttpServerResponse ConnectError(int status, const char* code, const std::string& message) {
  const nlohmann::json json = {{"code", code}, {"message", message}};
  return {.status = status,
          .content_type = "application/json",
          .body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

std::optional<HttpServerResponse> RefuseCall(const HttpServerRequest& request) {
  if (request.method != "POST") {
    return HttpServerResponse{
        .status = 405, .body = "this takes POST\n", .headers = {{"Allow", "POST"}}};
  }
  if (!FindEncoding(request.Header("content-type"))) {
    return HttpServerResponse{.status = 415,
                              .headers = {{"Accept-Post", "application/proto, application/json"}}};
  }
  const std::string version = request.Header("connect-protocol-version");
  if (!version.empty() && version != "1") {
    return ConnectError(400, "invalid_argument",
                        "Connect-Protocol-Version must be 1, not '" + version + "'");
  }
  const std::string encoding = request.Header("content-encoding");
  if (!encoding.empty() && encoding != "identity" && encoding != "gzip") {
    return ConnectError(501, "unimplemented",
                        "Content-Encoding '" + encoding + "': this store reads gzip");
  }
  return std::nullopt;
}

PushEncoding EncodingOf(const HttpServerRequest& request) {
  return FindEncoding(request.Header("content-type")).value_or(PushEncoding::kProto);
}

Result<std::string> ReadCall(const HttpServerRequest& request, size_t max_bytes) {
  if (request.Header("content-encoding") == "gzip") {
    Result<std::string> body = GunzipBounded(request.body, max_bytes);
    if (!body.ok()) return Annotate(body.status(), "request body");
    return body;
  }
  if (request.body.size() > max_bytes) {
    return ResourceExhaustedError("the request is larger than " + std::to_string(max_bytes) +
                                  " bytes");
  }
  return request.body;
}

}  // namespace flamefleet::store
