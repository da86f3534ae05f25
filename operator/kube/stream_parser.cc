// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/stream_parser.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/wire.h"
#include "operator/api/json_reader.h"
#include "operator/api/message_reader.h"
#include "operator/kube/message_splitter.h"
#include "operator/kube/object_splitter.h"

namespace flamefleet {
namespace {

using nlohmann::json;

json ParseJson(std::string_view text) {
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// `metadata` is of a list.
template <typename Reader>
void ReadListMeta(const Reader& metadata, std::string& version, std::string& continue_token) {
  metadata.String({"resourceVersion", 2}, version);
  metadata.String({"continue", 3}, continue_token);
}

class JsonListParser final : public ListParser {
 public:
  explicit JsonListParser(Handler on_object)
      : on_object_(std::move(on_object)),
        splitter_(ObjectSplitter::Mode::kList, [this](std::string_view text) {
          const json object = ParseJson(text);
          return on_object_({&object, {}});
        }) {}

  Status Feed(std::string_view piece) override { return splitter_.Feed(piece); }
  Status Finish() override {
    FF_RETURN_IF_ERROR(splitter_.Finish());
    const json list = ParseJson(splitter_.envelope());
    const api::ObjectReader reader(list, "list");
    reader.Object("metadata", [this](const api::ObjectReader& metadata) {
      ReadListMeta(metadata, version_, continue_token_);
    });
    return reader.status();
  }

 private:
  const Handler on_object_;
  ObjectSplitter splitter_;
};

class MessageListParser final : public ListParser {
 public:
  explicit MessageListParser(Handler on_object)
      : on_object_(std::move(on_object)), splitter_([this](std::string_view message) {
          return on_object_({nullptr, message});
        }) {}

  Status Feed(std::string_view piece) override { return splitter_.Feed(piece); }
  Status Finish() override {
    FF_RETURN_IF_ERROR(splitter_.Finish());
    const api::MessageReader metadata(splitter_.metadata(), "list.metadata");
    ReadListMeta(metadata, version_, continue_token_);
    return metadata.status();
  }

 private:
  const Handler on_object_;
  MessageListSplitter splitter_;
};

class JsonWatchParser final : public WatchParser {
 public:
  explicit JsonWatchParser(Handler on_event)
      : on_event_(std::move(on_event)),
        splitter_(ObjectSplitter::Mode::kStream,
                  [this](std::string_view text) { return Take(text); }) {}

  Status Feed(std::string_view piece) override { return splitter_.Feed(piece); }

 private:
  Status Take(std::string_view text) {
    const json event = ParseJson(text);
    WatchEvent out;
    const api::ObjectReader reader(event, "watch event");
    reader.String("type", out.type);
    out.object.json = reader.Find("object");
    if (out.type.empty() || out.object.json == nullptr) {
      return DataLossError("watch: an event without type or object");
    }
    return on_event_(out);
  }

  const Handler on_event_;
  ObjectSplitter splitter_;
};

class MessageWatchParser final : public WatchParser {
 public:
  explicit MessageWatchParser(Handler on_event)
      : on_event_(std::move(on_event)),
        splitter_([this](std::string_view frame) { return Take(frame); }) {}

  Status Feed(std::string_view piece) override { return splitter_.Feed(piece); }

 private:
  // metav1.WatchEvent{type 1, object 2: RawExtension{raw 1}}
  Status Take(std::string_view frame) {
    WatchEvent out;
    WireReader reader(frame);
    std::string_view object;
    for (WireField field; reader.Next(&field);) {
      if (field.type != WireType::kBytes) continue;
      if (field.number == 1) out.type = field.bytes;
      if (field.number == 2) object = field.bytes;
    }
    WireReader extension(object);
    for (WireField field; extension.Next(&field);) {
      if (field.number == 1 && field.type == WireType::kBytes) {
        out.object.message = OpenEnvelope(field.bytes);
      }
    }
    if (reader.damaged() || out.type.empty() || out.object.message.empty()) {
      return DataLossError("watch: an event without type or object");
    }
    return on_event_(out);
  }

  const Handler on_event_;
  MessageFrameSplitter splitter_;
};

}  // namespace

std::unique_ptr<ListParser> ListParser::Create(Encoding encoding, Handler on_object) {
  if (encoding == Encoding::kJson) return std::make_unique<JsonListParser>(std::move(on_object));
  return std::make_unique<MessageListParser>(std::move(on_object));
}

std::unique_ptr<WatchParser> WatchParser::Create(Encoding encoding, Handler on_event) {
  if (encoding == Encoding::kJson) return std::make_unique<JsonWatchParser>(std::move(on_event));
  return std::make_unique<MessageWatchParser>(std::move(on_event));
}

}  // namespace flamefleet
