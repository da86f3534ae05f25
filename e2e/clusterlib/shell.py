# SPDX-License-Identifier: Apache-2.0
"""Running commands to their end, and locks between processes."""

import contextlib
import fcntl
import subprocess

from .progress import Failure, say

KEPT_LINES = 25  # of the output of a command or log that failed


def tail(text):
    return "\n".join("    " + line for line in text.rstrip().splitlines()[-KEPT_LINES:])


def run(*argv, input=None, env=None, cwd=None, check=True):
    """Runs a command and returns its stdout. A failing command fails with its last lines."""
    argv = [str(a) for a in argv]
    try:
        done = subprocess.run(argv, input=input, env=env, cwd=cwd, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError:
        raise Failure(f"{argv[0]} is not installed: run `make deps`") from None
    if check and done.returncode != 0:
        raise Failure(f"`{' '.join(argv)}` exited with {done.returncode}:\n{tail(done.stdout + done.stderr)}")
    return done.stdout


@contextlib.contextmanager
def exclusive(path, doing):
    """Holds the lock file `path`; tells the user when somebody else holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"-> waiting: another process is {doing} (lock {path})")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
