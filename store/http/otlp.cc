// SPDX-License-Identifier: Apache-2.0
#include "store/http/otlp.h"

#include <string>

#include "base/utf8.h"
#include "proto/otlp/profiles.pb.h"

namespace flamefleet::store {
namespace {

namespace pb = opentelemetry::proto::collector::profiles::v1development;

constexpr char kVersion[] = "1";

}  // namespace

std::optional<HttpServerResponse> RefuseOtlp(const HttpServerRequest& request) {
  if (request.method != "POST") {
    return HttpServerResponse{
        .status = 405, .body = "this takes POST\n", .headers = {{"Allow", "POST"}}};
  }
  const std::string type = request.Header("content-type");
  if (type.substr(0, type.find(';')) != kOtlpContentType) {
    return OtlpError(415, InvalidArgumentError(std::string("Content-Type: this store reads ") +
                                               kOtlpContentType));
  }
  const std::string encoding = request.Header("content-encoding");
  if (!encoding.empty() && encoding != "identity" && encoding != "gzip") {
    return OtlpError(
        415, InvalidArgumentError("Content-Encoding '" + encoding + "': this store reads gzip"));
  }
  const auto version = request.headers.find(kOtlpVersionHeader);
  if (version != request.headers.end() && version->second != kVersion) {
    return OtlpError(
        400, InvalidArgumentError(std::string(kOtlpVersionHeader) + ": '" + version->second +
                                  "': this store reads version " + kVersion));
  }
  return std::nullopt;
}

HttpServerResponse OtlpAnswer(size_t refused, const Status& error) {
  pb::ExportProfilesServiceResponse answer;
  if (refused > 0) {
    answer.mutable_partial_success()->set_rejected_profiles(static_cast<int64_t>(refused));
    answer.mutable_partial_success()->set_error_message(ToUtf8(ErrorMessage(error)));
  }
  return {.content_type = kOtlpContentType, .body = answer.SerializeAsString()};
}

HttpServerResponse OtlpError(int status, const Status& error) {
  pb::RpcStatus answer;
  answer.set_code(static_cast<int>(error.code()));
  answer.set_message(ToUtf8(ErrorMessage(error)));
  return {.status = status, .content_type = kOtlpContentType, .body = answer.SerializeAsString()};
}

}  // namespace flamefleet::store
