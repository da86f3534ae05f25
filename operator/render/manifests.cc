// SPDX-License-Identifier: Apache-2.0
#include "operator/render/manifests.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "base/fd.h"
#include "operator/render/yaml_reader.h"

namespace flamefleet::render {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kStandardInput = "-";

bool IsManifestFile(const fs::path& path) {
  const std::string extension = path.extension();
  const std::string stem = path.stem();
  return (extension == ".yaml" || extension == ".yml" || extension == ".json") &&
         stem != "kustomization";
}

class Reader {
 public:
  Manifests Read(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      something_there_ = false;
      ReadPath(path);
      if (!something_there_) Fail({.file = path}, "", "", "there is no manifest in it");
    }
    return std::move(out_);
  }

 private:
  void ReadPath(const std::string& path) {
    if (path == kStandardInput)
      return ReadText(path, ReadFd(STDIN_FILENO, kMaxFileBytes, "standard input"));
    std::error_code error;
    if (!fs::is_directory(path, error)) return ReadText(path, ReadFile(path, kMaxFileBytes));
    std::vector<std::string> files;
    for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;  // a link to nothing is no file
      if (entry->is_regular_file(ignored) && IsManifestFile(entry->path()))
        files.push_back(entry->path());
    }
    if (error) return Fail({.file = path}, "", "", "read folder: " + error.message());
    std::ranges::sort(files);
    for (const std::string& file : files)
      ReadText(file, ReadFile(file, kMaxFileBytes));
  }

  void ReadText(const std::string& file, const Result<std::string>& text) {
    if (!seen_.insert(file).second) {  // named twice, or also part of a folder
      something_there_ = true;
      return;
    }
    if (!text.ok()) return Fail({.file = file}, "", "", ErrorMessage(text.status()));
    ReadYaml(*text, [&](int number, Result<json> document) {
      const Source source{.file = file, .document = number};
      if (!document.ok()) return Fail(source, "", "", ErrorMessage(document.status()));
      Take(source, *std::move(document));
    });
  }

  void Take(const Source& source, json object) {
    if (object.is_null()) return;
    something_there_ = true;
    if (!object.is_object())
      return Fail(source, "", "", "not an object of Kubernetes but a " + TypeOf(object));
    const std::string kind = TextOf(object, "kind");
    if (kind.empty()) return Fail(source, "", "kind", "want the name of a kind");
    if (TextOf(object, "apiVersion").empty())
      return Fail(source, kind, "apiVersion", "want group/version, or v1");
    const auto items = object.find("items");
    if (kind.ends_with("List") && items != object.end() && items->is_array())
      return TakeItems(source, object, kind.substr(0, kind.size() - 4), *items);
    const auto metadata = object.find("metadata");
    if (metadata == object.end() || !metadata->is_object())
      return Fail(source, kind, "metadata", "want object");
    if (TextOf(*metadata, "name").empty() && TextOf(*metadata, "generateName").empty())
      return Fail(source, kind, "metadata.name", "want the name of the object");
    out_.objects.push_back({source, std::move(object)});
  }

  // The items of a typed list may leave out what all of them share.
  void TakeItems(Source source, const json& list, const std::string& kind, json& items) {
    for (json& item : items) {
      ++source.item;
      if (item.is_object() && !kind.empty()) {
        item.emplace("kind", kind);
        item.emplace("apiVersion", list["apiVersion"]);
      }
      if (item.is_object() && TextOf(item, "kind").ends_with("List") && item.contains("items")) {
        Fail(source, TextOf(item, "kind"), "", "a list within a list");
        continue;
      }
      Take(source, std::move(item));
    }
  }

  static std::string TypeOf(const json& value) { return value.type_name(); }

  void Fail(const Source& source, const std::string& object, const std::string& field,
            const std::string& cause) {
    something_there_ = true;
    out_.findings.push_back({source, object, field, cause});
  }

  Manifests out_;
  std::set<std::string> seen_;
  bool something_there_ = false;  // of the path that is read; an empty List is something
};

}  // namespace

std::string Source::Text() const {
  std::string text = file == kStandardInput ? "standard input" : file;
  if (document != 0) text += ", document " + std::to_string(document);
  if (item != 0) text += ", item " + std::to_string(item);
  return text;
}

std::string TextOf(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string ObjectText(const json& object) {
  const json& metadata = object.at("metadata");
  std::string name = TextOf(metadata, "name");
  if (name.empty()) name = TextOf(metadata, "generateName") + "*";
  const std::string ns = TextOf(metadata, "namespace");
  return TextOf(object, "kind") + " " + (ns.empty() ? "" : ns + "/") + name;
}

Manifests ReadManifests(const std::vector<std::string>& paths) {
  return Reader().Read(paths);
}

}  // namespace flamefleet::render
