// SPDX-License-Identifier: Apache-2.0
// The symbols of a series and day: its distinct stacks, with their labels, numbered from 0 per
// generation, and what they name. Rows of the table `symbols`, each a pprof whose samples are the
// stacks from first_stack on, complete in itself.
//
// Thread: any; the connection's. Errors: kDataLoss also when a row has changed on disk or is
// missing.
#pragma once

#include <cstdint>
#include <functional>

#include "base/pprof/profile.h"
#include "base/pprof/stack_table.h"
#include "base/sqlite.h"
#include "base/status.h"

namespace flamefleet::store {

// Calls `visitor` for each row: stack i of it has the number first_stack + i. It may take `stacks`.
using SymbolsVisitor = std::function<Status(uint32_t first_stack, pprof::Profile* stacks)>;
Status VisitSymbols(SqliteConnection* connection, int64_t series, int64_t generation,
                    const SymbolsVisitor& visitor);

// The newest generation of the series; 0 when there is none.
Result<int64_t> NewestGeneration(SqliteConnection* connection, int64_t series);

// All symbols of a generation; `rows` is how many rows that took.
Status LoadSymbols(SqliteConnection* connection, int64_t series, int64_t generation,
                   pprof::StackTable* table, size_t* rows);

// Adds a row of the stacks from number `first` on.
Status InsertSymbols(SqliteConnection* connection, int64_t series, int64_t generation,
                     const pprof::StackTable& table, uint32_t first);

}  // namespace flamefleet::store
