// SPDX-License-Identifier: Apache-2.0
// Threads are few and named: what `top -H` shows is what ARCHITECTURE.md lists.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace flamefleet {

// A thread called `name` (at most 15 characters, checked) that runs `body`; destruction requests
// stop and joins.
std::jthread StartThread(const std::string& name, std::function<void(std::stop_token)> body);

// Waits until `stop` is requested or the time is over; true when stopped.
bool WaitForStop(const std::stop_token& stop, std::chrono::nanoseconds timeout);

// Blocks SIGINT and SIGTERM in the calling thread and all that it starts later; call first in
// main().
void BlockTerminationSignals();
// Waits for SIGINT or SIGTERM and returns it. With a timeout of zero it waits for ever, else it
// returns 0 at its end.
int WaitForTerminationSignal(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(0));

}  // namespace flamefleet
