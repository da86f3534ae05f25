// SPDX-License-Identifier: Apache-2.0
#include "store/ingest/multipart.h"

#include <algorithm>
#include <cctype>

namespace flamefleet::store {
namespace {

constexpr char kType[] = "multipart/form-data";
constexpr size_t kMaxBoundaryBytes = 70;  // RFC 2046

Status Bad(const std::string& what) {
  return InvalidArgumentError("multipart body: " + what);
}

std::string LowerCase(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// The value of `name=` in a header value, quoted or not; `found` says whether it is there.
std::string Parameter(std::string_view header, std::string_view name, bool* found) {
  *found = false;
  for (size_t at = header.find(';'); at != std::string_view::npos;) {
    ++at;
    while (at < header.size() && header[at] == ' ')
      ++at;
    const size_t equals = header.find('=', at);
    if (equals == std::string_view::npos) return "";
    const bool mine = LowerCase(header.substr(at, equals - at)) == name;
    std::string value;
    at = equals + 1;
    if (at < header.size() && header[at] == '"') {
      for (++at; at < header.size() && header[at] != '"'; ++at) {
        if (header[at] == '\\' && at + 1 < header.size()) ++at;
        value += header[at];
      }
      at = header.find(';', at);
    } else {
      const size_t end = std::min(header.find(';', at), header.size());
      value = header.substr(at, end - at);
      at = header.find(';', at);
    }
    if (mine) {
      *found = true;
      return value;
    }
  }
  return "";
}

// A part from behind its boundary line: headers, an empty line, the content.
Result<FormPart> ReadPart(std::string_view text) {
  FormPart part;
  for (;;) {
    const size_t end = text.find("\r\n");
    if (end == std::string_view::npos) return Bad("a part without an end of its headers");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 2);
    if (line.empty()) break;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return Bad("a header of a part has no colon");
    if (LowerCase(line.substr(0, colon)) != "content-disposition") continue;
    bool has_name = false;
    part.name = Parameter(line, "name", &has_name);
    Parameter(line, "filename", &part.has_file_name);
  }
  part.content = text;
  return part;
}

}  // namespace

bool IsMultipart(const std::string& content_type) {
  return LowerCase(content_type).starts_with(kType);
}

Result<std::vector<FormPart>> ReadMultipart(const std::string& content_type, std::string_view body,
                                            size_t max_parts) {
  bool has_boundary = false;
  const std::string boundary = Parameter(content_type, "boundary", &has_boundary);
  if (boundary.empty() || boundary.size() > kMaxBoundaryBytes) {
    return Bad("the Content-Type names no boundary");
  }
  const std::string first = "--" + boundary;
  const std::string next = "\r\n" + first;
  if (!body.starts_with(first)) return Bad("it does not begin with its boundary");
  body.remove_prefix(first.size());
  std::vector<FormPart> parts;
  while (!body.starts_with("--")) {
    if (!body.starts_with("\r\n")) return Bad("a boundary is not a line");
    body.remove_prefix(2);
    const size_t end = body.find(next);
    if (end == std::string_view::npos) return Bad("the last boundary is missing");
    if (parts.size() == max_parts) return Bad("more than " + std::to_string(max_parts) + " parts");
    FF_ASSIGN_OR_RETURN(parts.emplace_back(), ReadPart(body.substr(0, end)));
    body.remove_prefix(end + next.size());
  }
  return parts;
}

}  // namespace flamefleet::store
