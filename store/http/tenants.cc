// SPDX-License-Identifier: Apache-2.0
#include "store/http/tenants.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

namespace flamefleet::store {
namespace {

std::string DirectoryOf(const DatabaseOptions& options) {
  return options.directory + "/tenants";
}

}  // namespace

Result<std::unique_ptr<Tenants>> Tenants::Open(const Options& options, const Clock* clock,
                                               Metrics* metrics) {
  std::unique_ptr<Tenants> tenants(new Tenants(options, clock, metrics));
  const std::string directory = DirectoryOf(options.database);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return ErrnoError(error.value(), "create " + directory);
  const MutexLock lock(&tenants->mutex_);
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || !IsName(name)) continue;
    const Result<ProfileHandlers*> added = tenants->Add(name);
    if (!added.ok()) return Annotate(added.status(), "tenant " + name);
  }
  if (error) return ErrnoError(error.value(), "list " + directory);
  return tenants;
}

bool Tenants::IsName(const std::string& name) {
  constexpr std::string_view kMarks = "!-_.*'()";
  return !name.empty() && name.size() <= kMaxTenantName && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [&](unsigned char c) {
           return (c < 128 && std::isalnum(c) != 0) ||
                  kMarks.find(static_cast<char>(c)) != std::string_view::npos;
         });
}

std::string Tenants::NameOf(const HttpServerRequest& request) {
  const std::string header = request.Header("x-scope-orgid");
  return header.empty() ? request.QueryValue("tenant") : header;
}

Result<ProfileHandlers*> Tenants::Of(const std::string& name, bool create) {
  const MutexLock lock(&mutex_);
  if (const auto known = tenants_.find(name); known != tenants_.end()) {
    return known->second.handlers.get();
  }
  if (!create) return NotFoundError("tenant " + name + " has pushed nothing yet");
  return Add(name);
}

Result<ProfileHandlers*> Tenants::Add(const std::string& name) {
  if (tenants_.size() == options_.max_tenants) {
    return ResourceExhaustedError("this store keeps " + std::to_string(options_.max_tenants) +
                                  " tenants already (--tenants)");
  }
  const auto parts = static_cast<int64_t>(options_.max_tenants);
  DatabaseOptions of_tenant = options_.database;
  of_tenant.directory = DirectoryOf(options_.database) + "/" + name;
  of_tenant.max_bytes = options_.database.max_bytes / parts;
  of_tenant.tenant = name;
  FF_ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                      Database::Open(of_tenant, clock_, metrics_));
  auto handlers = std::make_unique<ProfileHandlers>(database.get(), clock_, metrics_,
                                                    options_.query_memory / options_.max_tenants);
  const auto [added, is_new] =
      tenants_.emplace(name, Tenant{std::move(database), std::move(handlers)});
  return added->second.handlers.get();
}

}  // namespace flamefleet::store
