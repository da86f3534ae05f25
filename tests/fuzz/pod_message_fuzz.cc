// SPDX-License-Identifier: Apache-2.0
// What the operator reads of an API server in protobuf: the first byte says whether the input is a
// list or a watch and in which pieces it arrives.
#include <cstdint>

#include "operator/api/pod.h"
#include "operator/kube/stream_parser.h"

using flamefleet::Encoding;
using flamefleet::ListParser;
using flamefleet::OkStatus;
using flamefleet::ServerObject;
using flamefleet::WatchEvent;
using flamefleet::WatchParser;

namespace {

void ReadObject(const ServerObject& object) {
  (void)HeadOf(object);
  (void)flamefleet::api::DecodePodMessage(object.message).ok();
}

template <typename Parser>
void Feed(Parser& parser, std::string_view text, size_t piece) {
  for (size_t at = 0; at < text.size(); at += piece) {
    if (!parser.Feed(text.substr(at, piece)).ok()) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t piece = size_t{1} << (data[0] >> 4);
  ReadObject({nullptr, text});
  if ((data[0] & 1) == 0) {
    const auto parser = ListParser::Create(Encoding::kProtobuf, [](const ServerObject& object) {
      ReadObject(object);
      return OkStatus();
    });
    Feed(*parser, text, piece);
    (void)parser->Finish().ok();
  } else {
    const auto parser = WatchParser::Create(Encoding::kProtobuf, [](const WatchEvent& event) {
      ReadObject(event.object);
      return OkStatus();
    });
    Feed(*parser, text, piece);
  }
  return 0;
}
