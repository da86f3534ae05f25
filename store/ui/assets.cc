// SPDX-License-Identifier: Apache-2.0
#include "store/ui/assets.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/gzip.h"

#include "assets_symbols.inc"

namespace flamefleet::store::ui {
namespace {

struct Asset {
  std::string_view path;
  const char* content_type;
  const char* etag;
  std::string_view gzip;
};

constexpr Asset kAssets[] = {
#include "assets.inc"
};

constexpr size_t kMaxAssetBytes = 16 << 20;  // far above the largest

// Function names and labels come from programs that nobody vouches for: whatever a page makes of
// them, no script but ours runs and nothing is sent elsewhere. speedscope needs blobs for what it
// exports, and WebAssembly.
constexpr char kPolicy[] =
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'wasm-unsafe-eval'; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'none'";

std::string_view FileOf(std::string_view path) {
  if (path == "/") return "/index.html";
  if (path == "/speedscope/") return "/speedscope/index.html";
  return path;
}

}  // namespace

std::optional<HttpServerResponse> FindAsset(const HttpServerRequest& request) {
  const std::string_view file = FileOf(request.path);
  const auto* const asset = std::find_if(std::begin(kAssets), std::end(kAssets),
                                         [&](const Asset& a) { return a.path == file; });
  if (asset == std::end(kAssets)) return std::nullopt;
  HttpServerResponse response{.content_type = asset->content_type};
  response.headers = {
      {"Cache-Control",
       file.starts_with("/assets/") ? "public, max-age=31536000, immutable" : "no-cache"},
      {"Content-Security-Policy", kPolicy},
      {"ETag", asset->etag},
      {"Referrer-Policy", "no-referrer"},
      {"Vary", "Accept, Accept-Encoding"},
      {"X-Content-Type-Options", "nosniff"},
  };
  if (request.Header("if-none-match") == asset->etag) {
    response.status = 304;
    return response;
  }
  if (request.Header("accept-encoding").find("gzip") != std::string::npos) {
    response.headers["Content-Encoding"] = "gzip";
    response.body = asset->gzip;
    return response;
  }
  Result<std::string> plain = GunzipBounded(asset->gzip, kMaxAssetBytes);
  if (!plain.ok()) {
    return HttpServerResponse{.status = 500, .body = ErrorMessage(plain.status()) + "\n"};
  }
  response.body = *std::move(plain);
  return response;
}

}  // namespace flamefleet::store::ui
