// SPDX-License-Identifier: Apache-2.0
// A program with much that is inlined: templates, lambdas, a namespace without a name.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>
namespace {
struct Row {
  std::string key;
  double value = 0;
};
template <typename F>
double Sum(const std::vector<Row>& rows, F f) {
  double s = 0;
  for (const auto& r : rows)
    s += f(r);
  return s;
}
std::map<std::string, std::vector<Row>> Group(std::vector<Row> rows) {
  std::map<std::string, std::vector<Row>> groups;
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.value < b.value; });
  for (Row& row : rows)
    groups[row.key.substr(0, 1)].push_back(std::move(row));
  return groups;
}
}  // namespace
int main(int argc, char** argv) {
  std::vector<Row> rows;
  for (int i = 1; i < argc; ++i)
    rows.push_back({argv[i], static_cast<double>(i)});
  for (auto& [k, g] : Group(rows)) {
    std::ostringstream o;
    o << k << Sum(g, [](const Row& r) { return r.value * 2; });
    std::cout << o.str();
  }
  std::function<int(int)> f = [&](int n) { return n < 2 ? n : f(n - 1) + f(n - 2); };
  return f(argc % 20);
}
