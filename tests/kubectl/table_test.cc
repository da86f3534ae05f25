// SPDX-License-Identifier: Apache-2.0
#include "kubectl/table.h"

#include <gtest/gtest.h>

namespace flamefleet::kubectl {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCellAndAnEmptyCellIsNone) {
  Table table({"NAME", "STATE", "REASON"});
  table.Add({"a-long-name", "Idle", ""});
  table.Add({"b", "Profiled", "x"});
  EXPECT_EQ(table.Text(),
            "NAME          STATE      REASON\n"
            "a-long-name   Idle       <none>\n"
            "b             Profiled   x\n");
}

TEST(Table, WidthIsInCharacters) {
  Table table({"A", "B"});
  table.Add({"\xC3\xA4", "1"});
  EXPECT_EQ(table.Text(), "A   B\n\xC3\xA4   1\n");
}

TEST(Table, ControlCharactersReachNoTerminal) {
  Table table({"A"});
  table.Add({"x\x1B[2J\ny"});
  EXPECT_EQ(table.Text(), "A\nx [2J y\n");
}

}  // namespace
}  // namespace flamefleet::kubectl
