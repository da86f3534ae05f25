# SPDX-License-Identifier: Apache-2.0
"""Ends a cluster, healthy or half dead, and takes away everything that it left on the machine.

There is one way down only: it does not ask the cluster for anything, so it works as well after a crash.
"""

import contextlib
import os
import shutil
import signal
from pathlib import Path

from . import cgroups, network
from .processes import Processes
from .progress import Failure
from .shell import run

_GRACE_SECONDS = {"kubelet": 10, "containerd": 10}  # others keep nothing worth a wait
# Folders that programs write to whatever their configuration says.
_KUBELET_LOG_LINKS = Path("/var/log/containers")
_KUBELET_DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")
_CNI_RESULTS = Path("/var/lib/cni/results")
_AGENT_SPOOLS = Path("/var/lib/flamefleet")


def destroy(state):
    """Stops all processes, then removes cgroups, shims, mounts, network and files, in this order."""
    _stop_recorded(state)
    cgroups.kill_and_remove()
    _kill_shims(state)
    _unmount_below(state)
    network.remove(state)
    _remove_files_outside(state)
    shutil.rmtree(state, ignore_errors=True)


def leftovers(state):
    """One line for each thing of a cluster that is still on this machine."""
    found = [f"process {p.name} (pid {p.pid})" for p in Processes(state).all() if p.alive()]
    found += [f"shim (pid {pid})" for pid in _shims(state)]
    found += [f"process in a pod's cgroup (pid {pid})" for pid in cgroups.processes()]
    found += [f"mount {point}" for point in _mounts_below(state)]
    found += network.leftovers()
    if state.exists():
        found.append(f"folder {state}")
    return found


def _stop_recorded(state):
    # The kubelets first, so that nothing is started again; containerd last, since the kubelets end through it.
    def order(process):
        return 0 if process.name.startswith("kubelet") else 2 if process.name.startswith("containerd") else 1

    for process in sorted(Processes(state).all(), key=order):
        process.stop(_GRACE_SECONDS.get(process.name.partition("-")[0], 0))
        if process.alive():
            raise Failure(f"{process.name} (pid {process.pid}) does not end, even by SIGKILL")


def _shims(state):
    """Pids of containerd-shims whose containerd was ours: they outlive it."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            argv = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "containerd-shim" in argv[0] and any(arg.startswith(f"{state}/") for arg in argv):
            yield int(folder.name)


def _kill_shims(state):
    for pid in list(_shims(state)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    # Their sockets lie outside of containerd's state; a file beside each container names its socket.
    for file in state.glob("*/containerd/io.containerd.runtime.v2.task/k8s.io/*/address"):
        with contextlib.suppress(OSError):
            Path(file.read_text().removeprefix("unix://")).unlink()


def _mounts_below(state):
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [p for p in points if p.startswith(f"{state}/")]


def _unmount_below(state):
    for point in reversed(_mounts_below(state)):
        run("umount", "--lazy", point, check=False)


def _remove_files_outside(state):
    for link in _KUBELET_LOG_LINKS.glob("*.log"):
        if link.is_symlink() and Path(os.readlink(link)).is_relative_to(state):
            link.unlink()
    for sandbox in state.glob("*/containerd-root/io.containerd.grpc.v1.cri/sandboxes/*"):
        for result in _CNI_RESULTS.glob(f"*-{sandbox.name}-*"):
            result.unlink()
    for spool in _AGENT_SPOOLS.glob("node-*"):
        shutil.rmtree(spool, ignore_errors=True)
    for name in ("kubelet.sock", "DEPRECATION"):
        (_KUBELET_DEVICE_PLUGINS / name).unlink(missing_ok=True)
    for folder in (_KUBELET_LOG_LINKS, _KUBELET_DEVICE_PLUGINS, _KUBELET_DEVICE_PLUGINS.parent, _CNI_RESULTS,
                   _CNI_RESULTS.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()  # refuses when something of others is in it
