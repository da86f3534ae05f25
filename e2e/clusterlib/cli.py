# SPDX-License-Identifier: Apache-2.0
"""The command line of e2e/cluster."""

import argparse
import sys
from pathlib import Path

from . import apiserver, binaries, images
from .cluster import Cluster
from .progress import Failure, say


def _parser():
    parser = argparse.ArgumentParser(prog="e2e/cluster", description="A real Kubernetes cluster on this machine. "
                                     "State: $FLAMEFLEET_STATE or /var/tmp/flamefleet-cluster.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the control plane, its clients and the base image, without starting anything")
    up = commands.add_parser("up", help="start the cluster, or keep the healthy one that runs")
    up.add_argument("--nodes", type=int, default=2, choices=range(1, 10), metavar="N", help="default: 2")
    commands.add_parser("load", help="build our image and the workloads' and import them into the nodes")
    commands.add_parser("down", help="stop the cluster and remove everything of it, also after a crash")
    commands.add_parser("status", help="show processes, nodes and pods")
    commands.add_parser("kubeconfig", help="print the exports that make `kubectl` use the cluster")
    api = commands.add_parser("apiserver", help="run etcd and kube-apiserver alone in the foreground: prints the "
                              "path of a kubeconfig when ready, runs until SIGTERM or SIGINT; DIR/kubectl is a kubectl")
    api.add_argument("--dir", type=Path, required=True, help="an empty folder for all its files")
    api.add_argument("--flag", action="append", default=[], help="an extra flag of kube-apiserver; repeatable")
    api.add_argument("--controllers", action="store_true", help="run kube-controller-manager, too")
    api.add_argument("--stop-on-eof", action="store_true", help="stop when stdin ends, too")
    return parser


def _run(arguments):
    cluster = Cluster()
    match arguments.command:
        case "build":
            binaries.ensure()
            binaries.ensure_clients()
            images.ensure_base()
        case "up":
            with cluster.locked():
                cluster.up(arguments.nodes)
            say("-> to use it: eval \"$(e2e/cluster kubeconfig)\"; kubectl get nodes")
        case "load":
            with cluster.locked():
                cluster.load({**images.flamefleet_archive(), **images.workload_archives()})
        case "down":
            with cluster.locked():
                cluster.down()
        case "status":
            cluster.status()
        case "kubeconfig":
            for name, value in cluster.environment().items():
                print(f"export {name}='{value}'")
        case "apiserver":
            apiserver.serve(arguments.dir, arguments.flag, arguments.stop_on_eof, arguments.controllers)


def main():
    try:
        _run(_parser().parse_args())
    except Failure as failure:
        say(f"e2e/cluster: {failure}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
