// SPDX-License-Identifier: Apache-2.0
#include "agent/run/profile_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/fd.h"
#include "base/gzip.h"

namespace flamefleet::agent {
namespace {

// Of NAME_MAX (255) less the ending and a number.
constexpr size_t kMaxNameBytes = 100;
constexpr unsigned kFileMode = 0644;

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-' || c == '+';
}

}  // namespace

std::string FileNameOf(const std::string& service, std::set<std::string>* used) {
  std::string name = service.substr(0, kMaxNameBytes);
  for (char& c : name) {
    if (!IsNameCharacter(c)) c = '_';
  }
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  std::string unique = name;
  for (int i = 2; !used->insert(unique).second; ++i)
    unique = name + "-" + std::to_string(i);
  return unique;
}

Status ProfileFiles::Add(const FinishedProfile& profile) {
  const auto label = profile.labels.find("service_name");
  const std::string service = label == profile.labels.end() ? "unknown" : label->second;
  std::unique_ptr<pprof::Merger>& merger = services_[service];
  if (merger == nullptr) {
    if (services_.size() > kMaxServices) {
      services_.erase(service);
      return ResourceExhaustedError("service " + service + ": more than " +
                                    std::to_string(kMaxServices) + " services");
    }
    merger = std::make_unique<pprof::Merger>(kMaxServiceBytes);
  }
  pprof::Profile decoded;
  FF_RETURN_IF_ERROR(Annotate(pprof::Decode(profile.pprof, {}, &decoded), "service " + service));
  return Annotate(merger->Add(decoded), "service " + service);
}

Result<std::vector<ProfileFiles::File>> ProfileFiles::Write(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return ErrnoError(error.value(), "create folder " + directory);
  std::set<std::string> used;
  std::vector<File> files;
  for (auto& [service, merger] : services_) {
    if (merger->profiles() == 0) continue;
    const pprof::Profile profile = merger->Take();
    if (profile.sample_types.empty()) continue;
    const size_t last_type = profile.sample_types.size() - 1;
    std::string raw;
    pprof::Encode(profile, &raw);
    FF_ASSIGN_OR_RETURN(const std::string zipped, Gzip(raw));
    File file = {.path = directory + "/" + FileNameOf(service, &used) + ".pb.gz",
                 .service = service,
                 .samples = profile.samples.size(),
                 .total = pprof::TotalValue(profile, last_type),
                 .unit = std::string(profile.strings.Get(profile.sample_types[last_type].unit))};
    FF_RETURN_IF_ERROR(WriteFileAtomically(file.path, zipped, kFileMode));
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.total > b.total; });
  return files;
}

}  // namespace flamefleet::agent
