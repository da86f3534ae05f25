// SPDX-License-Identifier: Apache-2.0
// Table: rows under a header, aligned as kubectl aligns them; an empty cell is "<none>".
//
// Thread: any; pure. What programs or the cluster wrote into a cell cannot move the cursor: control
// characters become spaces.
#pragma once

#include <string>
#include <vector>

namespace flamefleet::kubectl {

class Table {
 public:
  explicit Table(std::vector<std::string> header);

  // As many cells as the header has.
  void Add(std::vector<std::string> row);
  bool empty() const { return rows_.size() == 1; }
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the header first
};

// `text` in one line.
std::string OneLine(std::string text);

}  // namespace flamefleet::kubectl
