# SPDX-License-Identifier: Apache-2.0
"""Long-running processes: each is recorded before it runs, and stopped only if it is still the same process.

A record is the line of /proc/PID/stat that the process had at its start: it holds the pid and the start time, so a pid
that the kernel has given to another process since is never signalled.
"""

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .progress import Failure
from .shell import tail

# exec keeps pid and start time, so the shell writes the record of the program it becomes: there is no moment in which
# the program runs unrecorded.
_RECORD_AND_EXEC = 'read -r stat </proc/$$/stat && echo "$stat" >"$0" && exec "$@"'
_START_TIME_FIELD = 19  # of /proc/PID/stat, counted from the one after the name in parentheses


def _stat_fields(text):
    """(pid, state, start time in ticks since boot) of a line of /proc/PID/stat."""
    pid, _, rest = text.partition(" (")
    fields = rest.rpartition(") ")[2].split()
    return int(pid), fields[0], int(fields[_START_TIME_FIELD])


def is_alive(pid, start_time):
    try:
        _, state, started = _stat_fields(Path(f"/proc/{pid}/stat").read_text())
    except (OSError, IndexError, ValueError):
        return False
    return started == start_time and state not in "ZX"


@dataclass(frozen=True)
class Process:
    name: str
    pid: int
    start_time: int
    log: Path

    def alive(self):
        return is_alive(self.pid, self.start_time)

    def last_lines(self):
        try:
            return f"last lines of {self.log}:\n{tail(self.log.read_text(errors='replace'))}"
        except OSError as error:
            return f"no log: {error}"

    def stop(self, grace_seconds):
        """Asks it to end, and kills it after the grace period."""
        for sig, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 10)):
            if not self.alive():
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)
            deadline = time.monotonic() + seconds
            while self.alive() and time.monotonic() < deadline:
                time.sleep(0.05)
            _reap(self.pid)


def _reap(pid):
    """Takes the exit status of a child of ours that has ended, so that it does not stay as a zombie."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


class Processes:
    """The processes of one state folder: records in `run/`, logs in `log/`."""

    def __init__(self, state):
        self._records = state / "run"
        self._logs = state / "log"

    def start(self, name, argv, env=None, die_with_parent=False):
        """Starts `argv` detached from the terminal. With die_with_parent the kernel kills it when we end."""
        self._records.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        record = self._records / name
        argv = [str(a) for a in argv]
        if die_with_parent:
            argv = ["setpriv", "--pdeathsig", "KILL", "--", *argv]
        with open(self._logs / f"{name}.log", "ab") as log:
            child = subprocess.Popen(["/bin/sh", "-c", _RECORD_AND_EXEC, str(record), *argv], stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log, start_new_session=True, env=env)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            process = self.find(name)
            if process and process.pid == child.pid:
                child.returncode = 0  # it outlives this object: Popen must not warn about that
                return process
            time.sleep(0.01)
        raise Failure(f"{name} did not start: see {self._logs / name}.log")

    def find(self, name):
        try:
            pid, _, start_time = _stat_fields((self._records / name).read_text())
        except (OSError, IndexError, ValueError):
            return None
        return Process(name, pid, start_time, self._logs / f"{name}.log")

    def all(self):
        names = sorted(p.name for p in self._records.glob("*")) if self._records.is_dir() else []
        return [p for p in map(self.find, names) if p]

    def forget(self, name):
        (self._records / name).unlink(missing_ok=True)

    def check_alive(self):
        """Fails with the last lines of the first process that has ended."""
        for process in self.all():
            if not process.alive():
                raise Failure(f"{process.name} has ended; {process.last_lines()}")
