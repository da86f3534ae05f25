// SPDX-License-Identifier: Apache-2.0
#include "base/reasons.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

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

}  // namespace
}  // namespace flamefleet::plan
