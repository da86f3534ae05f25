// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace flamefleet {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return InvalidArgumentError("halve " + std::to_string(number) + ": odd");
  return number / 2;
}

Result<int> Quarter(int number) {
  FF_ASSIGN_OR_RETURN(const int half, Half(number));
  return Half(half);
}

TEST(Status, AssignOrReturnHandsOnTheFirstError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(ErrorMessage(Quarter(6).status()), "halve 3: odd");
}

TEST(Status, ErrnoBecomesACodeThatDecidesRetry) {
  EXPECT_EQ(ErrnoError(ENOENT, "open /x").code(), StatusCode::kNotFound);
  EXPECT_EQ(ErrnoError(ENOSPC, "write").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoError(ECONNREFUSED, "connect").code(), StatusCode::kUnavailable);
  EXPECT_EQ(ErrorMessage(ErrnoError(ENOENT, "open /x")), "open /x: No such file or directory");
}

TEST(Status, AnnotateKeepsTheCodeAndPutsTheContextFirst) {
  const Status annotated = Annotate(UnavailableError("refused"), "push to main");
  EXPECT_EQ(annotated.code(), StatusCode::kUnavailable);
  EXPECT_EQ(ErrorMessage(annotated), "push to main: refused");
  EXPECT_TRUE(Annotate(OkStatus(), "x").ok());
}

}  // namespace
}  // namespace flamefleet
