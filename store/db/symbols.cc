// SPDX-License-Identifier: Apache-2.0
#include "store/db/symbols.h"

#include "base/zstd.h"

namespace flamefleet::store {
namespace {

constexpr int kCompressionLevel = 6;
// Far over what kMaxSymbolsBytes and one profile more can become: a row that was written is read.
constexpr size_t kMaxRowBytes = size_t{1} << 30;
constexpr size_t kMaxRowElements = size_t{1} << 28;
constexpr pprof::DecodeLimits kRowLimits = {.max_bytes = kMaxRowBytes,
                                            .max_samples = kMaxRowElements,
                                            .max_locations = kMaxRowElements,
                                            .max_strings = kMaxRowElements,
                                            .max_depth = kMaxRowElements,
                                            .max_elements = kMaxRowElements};

}  // namespace

Status VisitSymbols(SqliteConnection* connection, int64_t series, int64_t generation,
                    const SymbolsVisitor& visitor) {
  FF_ASSIGN_OR_RETURN(SqliteStatement rows,
                      connection->Prepare("SELECT first_stack, pprof FROM symbols WHERE "
                                          "series_id = ?1 AND generation = ?2 ORDER BY 1"));
  rows.BindInt(1, series);
  rows.BindInt(2, generation);
  pprof::Profile stacks;
  int64_t next = 0;
  for (;;) {
    FF_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return OkStatus();
    if (rows.Int(0) != next) return DataLossError("symbols: a row is missing");
    FF_ASSIGN_OR_RETURN(const std::string pprof, ZstdDecompress(rows.Bytes(1), kMaxRowBytes));
    if (const Status read = pprof::Decode(pprof, kRowLimits, &stacks); !read.ok()) {
      return DataLossError("symbols: " + ErrorMessage(read));
    }
    const auto first_stack = static_cast<uint32_t>(next);
    next += static_cast<int64_t>(stacks.samples.size());
    FF_RETURN_IF_ERROR(visitor(first_stack, &stacks));
  }
}

Result<int64_t> NewestGeneration(SqliteConnection* connection, int64_t series) {
  FF_ASSIGN_OR_RETURN(
      SqliteStatement newest,
      connection->Prepare("SELECT coalesce(max(generation), 0) FROM symbols WHERE series_id = ?1"));
  newest.BindInt(1, series);
  FF_RETURN_IF_ERROR(newest.Step().status());
  return newest.Int(0);
}

Status LoadSymbols(SqliteConnection* connection, int64_t series, int64_t generation,
                   pprof::StackTable* table, size_t* rows) {
  *rows = 0;
  return VisitSymbols(connection, series, generation,
                      [&](uint32_t first_stack, pprof::Profile* stacks) {
                        ++*rows;
                        table->Begin(*stacks);
                        for (uint32_t i = 0; i < stacks->samples.size(); ++i) {
                          if (table->AddStack(i) != first_stack + i) {
                            return DataLossError("symbols: a stack occurs twice");
                          }
                        }
                        return OkStatus();
                      });
}

Status InsertSymbols(SqliteConnection* connection, int64_t series, int64_t generation,
                     const pprof::StackTable& table, uint32_t first) {
  pprof::StackTable added(pprof::StackTable::Mappings::kExact);
  added.Begin(table.profile());
  for (uint32_t i = first; i < table.Size(); ++i)
    added.AddStack(i);
  // A pprof has a value per sample.
  added.profile().sample_types.assign(1, {});
  added.profile().values.assign(added.Size(), 1);
  std::string pprof;
  pprof::Encode(added.profile(), &pprof);
  const std::string frame = ZstdCompress(pprof, kCompressionLevel);
  FF_ASSIGN_OR_RETURN(SqliteStatement insert,
                      connection->Prepare("INSERT INTO symbols VALUES (?1, ?2, ?3, ?4)"));
  insert.BindInt(1, series);
  insert.BindInt(2, generation);
  insert.BindInt(3, first);
  insert.BindBlob(4, frame);
  return insert.Run();
}

}  // namespace flamefleet::store
