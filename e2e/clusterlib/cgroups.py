# SPDX-License-Identifier: Apache-2.0
"""The cgroups below which a node keeps its pods: one root per node, in every hierarchy (v1, hybrid and v2)."""

import contextlib
import os
import signal
import time
from pathlib import Path

PREFIX = "flamefleet-node"
_INHERITED = ("cpuset.cpus", "cpuset.mems")  # empty in a new v1 cpuset, which then takes no process
_KILL_SECONDS = 20


def _hierarchies():
    """(mount point, is v2) of each cgroup file system."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        kind = rest.split()[0]
        if kind in ("cgroup", "cgroup2"):
            yield Path(fields.split()[4]), kind == "cgroup2"


def create(name):
    """The kubelet refuses to start unless its root exists everywhere."""
    for mount, is_v2 in _hierarchies():
        folder = mount / name
        folder.mkdir(exist_ok=True)
        if is_v2:
            controllers = " ".join("+" + c for c in (mount / "cgroup.controllers").read_text().split())
            for level in (mount, folder):
                if controllers:
                    (level / "cgroup.subtree_control").write_text(controllers)
            continue
        for file in _INHERITED:
            if (mount / file).exists():
                (folder / file).write_text((mount / file).read_text())


def _roots():
    return [root for mount, _ in _hierarchies() for root in mount.glob(PREFIX + "*")]


def processes():
    """Pids of everything that runs in any node's cgroups."""
    pids = set()
    for root in _roots():
        for file in root.rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                pids.update(map(int, file.read_text().split()))
    return pids


def kill_and_remove():
    """Kills every process in the nodes' cgroups, then removes the cgroups."""
    deadline = time.monotonic() + _KILL_SECONDS
    while (pids := processes()) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    for root in _roots():
        for folder, _, _ in os.walk(root, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
