# SPDX-License-Identifier: Apache-2.0
"""`e2e/cluster apiserver`: etcd and kube-apiserver alone, for tests of the operator, if wanted with
kube-controller-manager. Many may run side by side."""

import os
import select
import shutil
import signal
import sys
import time

from . import binaries
from .controlplane import ControlPlane, Endpoints
from .ports import Ports
from .processes import Processes
from .progress import Failure

FLAGS = [
    # Without a controller-manager nobody makes a namespace's default service account, so pods could not be created.
    "--disable-admission-plugins=ServiceAccount",
    # Its Service would point at a loopback address, which the API refuses.
    "--endpoint-reconciler-type=none",
]
WATCH_SECONDS = 1


def serve(folder, extra_flags, stop_on_eof, controllers=False):
    """Starts the pair in `folder`, prints the path of the kubeconfig, and runs until told to stop.

    `folder` then also has a `kubectl` of the server's version. With `controllers` kube-controller-manager runs too.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise Failure(f"{folder} is not empty: each API server needs a folder of its own")
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda *_: sys.exit(0))
    programs = binaries.ensure()
    (folder / "kubectl").symlink_to(programs / "kubectl")  # tests need none from elsewhere
    ports = Ports()
    endpoints = Endpoints(ports.take(), ports.take(), ports.take(), "127.0.0.1")
    processes = Processes(folder)
    try:
        # The kernel kills both when this process ends in whatever way: a killed test leaves nothing running.
        plane = ControlPlane(folder, programs, processes, endpoints, die_with_parent=True)
        plane.start_api_server([*FLAGS, *extra_flags])
        if controllers:
            plane.start_controller_manager(["--secure-port=0"])  # nobody asks it anything
        print(plane.certificates.file("admin.kubeconfig"), flush=True)
        while True:
            processes.check_alive()
            if not stop_on_eof:
                time.sleep(WATCH_SECONDS)
            elif _stdin_ended():
                return
    finally:
        for process in processes.all():
            process.stop(grace_seconds=0)
        shutil.rmtree(folder / "etcd", ignore_errors=True)


def _stdin_ended():
    """Waits a moment for the end of stdin."""
    readable, _, _ = select.select([0], [], [], WATCH_SECONDS)
    return bool(readable) and not os.read(0, 4096)
