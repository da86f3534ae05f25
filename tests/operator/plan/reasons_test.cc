// SPDX-License-Identifier: Apache-2.0
#include "base/reasons.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>

#include "operator/plan/condition_reasons.h"

namespace flamefleet::plan {
namespace {

TEST(Reasons, EveryOneIsExplained) {
  std::ifstream file("docs/reasons.md");  // tests run in the root of the repository
  std::stringstream text;
  text << file.rdbuf();
  const std::string doc = text.str();
  const auto expect = [&](std::string_view reason) {
    EXPECT_NE(doc.find("**" + std::string(reason) + "**"), std::string::npos)
        << reason << " is not in docs/reasons.md";
  };
  for (const Reason& reason : reasons::kAll)
    expect(reason.name);
  for (const std::string_view reason : condition_reasons::kAll)
    expect(reason);
}

TEST(Reasons, NothingElseIsExplained) {
  std::ifstream file("docs/reasons.md");
  std::set<std::string, std::less<>> known(condition_reasons::kAll.begin(),
                                           condition_reasons::kAll.end());
  for (const Reason& reason : reasons::kAll)
    known.emplace(reason.name);
  for (std::string line; std::getline(file, line);) {
    for (size_t begin = line.find("**"); begin != std::string::npos;) {
      const size_t end = line.find("**", begin + 2);
      ASSERT_NE(end, std::string::npos) << line;
      EXPECT_TRUE(known.contains(line.substr(begin + 2, end - begin - 2))) << line;
      begin = line.find("**", end + 2);
    }
  }
}

}  // namespace
}  // namespace flamefleet::plan
