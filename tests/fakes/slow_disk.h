// SPDX-License-Identifier: Apache-2.0
// UseSlowDisk: from now on every SQLite file of this process is on a disk that
// takes its time, and writes in two parts: who is killed between them leaves a
// torn write behind.
//
// Thread: the test's, once, before the first file is opened.
#pragma once

#include <chrono>

namespace flamefleet {

// `delay`: of each write, between its parts, and of each sync.
void UseSlowDisk(std::chrono::microseconds delay);

// Thread: any. While it stalls, no write and no sync ends.
void StallDisk(bool stalls);
// How many wait for that now.
int StalledWrites();

}  // namespace flamefleet
