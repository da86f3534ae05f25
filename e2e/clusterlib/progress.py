# SPDX-License-Identifier: Apache-2.0
"""Tells the person at the terminal what is being done and for how long. Everything goes to stderr."""

import contextlib
import sys
import threading
import time

TICK_SECONDS = 10  # a step says that it is still at work this often


class Failure(Exception):
    """A message for the user: what failed, on what, why and what to do. Never shown as a traceback."""


def say(text):
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text):
    """Announces `text`, repeats it every ten seconds with the time it has taken, and says when it is done."""
    began = time.monotonic()
    done = threading.Event()

    def tick():
        while not done.wait(TICK_SECONDS):
            say(f"   ... {text}: {time.monotonic() - began:.0f} s")

    ticker = threading.Thread(target=tick, name="progress", daemon=True)
    say(f"-> {text}")
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()
    seconds = time.monotonic() - began
    if seconds >= 1:
        say(f"   done in {seconds:.0f} s")


def wait_until(what, condition, seconds, explain=lambda: ""):
    """Polls `condition` until it returns something true, and returns that. Fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            detail = explain()
            raise Failure(f"gave up after {seconds} s waiting until {what}" + (f":\n{detail}" if detail else ""))
        time.sleep(0.2)
