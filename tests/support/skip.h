// SPDX-License-Identifier: Apache-2.0
// FF_SKIP: a test that cannot run here says why; where env CI is set nothing may be skipped.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#define FF_SKIP(reason)                                                        \
  do {                                                                         \
    if (std::getenv("CI") != nullptr) FAIL() << "skipped in CI: " << (reason); \
    GTEST_SKIP() << (reason);                                                  \
  } while (false)
