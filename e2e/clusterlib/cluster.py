# SPDX-License-Identifier: Apache-2.0
"""The cluster as a whole: up, down, status, load."""

import json
import os
from pathlib import Path

from . import addons, binaries, cleanup, images, network, paths
from .controlplane import ControlPlane, Endpoints
from .kubectl import Kubectl
from .node import Node
from .processes import Processes
from .progress import Failure, say, step, wait_until
from .shell import exclusive

API_PORT, ETCD_PORT, ETCD_PEER_PORT = 6443, 2379, 2380
NODES_READY_SECONDS = 120
DNS_READY_SECONDS = 120


class Cluster:
    """The one cluster of this machine."""

    def __init__(self):
        self.state = paths.state_dir()
        self.processes = Processes(self.state)
        self._record = self.state / "cluster.json"

    def locked(self):
        """Only one process changes the cluster at a time."""
        return exclusive(self.state.with_name(self.state.name + ".lock"), "changing the cluster")

    @property
    def kubeconfig(self):
        return self.state / "pki" / "admin.kubeconfig"

    def nodes(self):
        return [Node(number, self.state) for number in range(1, self._recorded()["nodes"] + 1)]

    def kubectl(self):
        return Kubectl(Path(self._recorded()["binaries"]), self.kubeconfig)

    def environment(self):
        """What a shell needs to use the cluster."""
        return {"KUBECONFIG": str(self.kubeconfig), "PATH": f"{self._recorded()['binaries']}:{os.environ['PATH']}"}

    def exists(self):
        return self._record.exists()

    def up(self, node_count):
        """Makes the cluster, or keeps the one that runs when it is healthy and as wanted."""
        if os.geteuid() != 0:
            raise Failure("the cluster needs root: it makes bridges, mounts and cgroups")
        programs = binaries.ensure()
        wanted = {"nodes": node_count, "binaries": str(programs), "ipv6": network.has_ipv6()}
        problem = self._problem(wanted)
        if not problem:
            say(f"-> the cluster in {self.state} is up and healthy: using it")
            return
        _refuse_beside_another_cluster(self.processes)
        if cleanup.leftovers(self.state):
            with step(f"removing what an earlier cluster left ({problem})"):
                cleanup.destroy(self.state)
        archives = images.system_archives(programs)
        self.state.mkdir(parents=True)
        self._record.write_text(json.dumps(wanted))
        self._start(programs, archives)

    def down(self):
        if not cleanup.leftovers(self.state):
            say("-> no cluster runs here")
            return
        with step(f"removing the cluster in {self.state}"):
            cleanup.destroy(self.state)
        left = cleanup.leftovers(self.state)
        if left:
            raise Failure("could not remove:\n  " + "\n  ".join(left))

    def load(self, archives):
        """Imports images into every node; returns the names of those that some node did not have yet."""
        changed = set()
        for node in self.nodes():
            with step(f"loading images into {node.name}"):
                changed.update(images.load(node, self.state, archives))
        return changed

    def status(self):
        """Prints processes and nodes; fails when the cluster is not healthy."""
        if not self.exists():
            raise Failure(f"no cluster in {self.state}: `e2e/cluster up` makes one")
        for process in self.processes.all():
            state = "running" if process.alive() else "ENDED"
            print(f"{process.name:26} {state:8} pid {process.pid:<8} {process.log}")
        problem = self._problem(self._recorded())
        if problem:
            raise Failure(f"the cluster is not healthy: {problem}")
        print(self.kubectl()("get", "nodes,pods", "--all-namespaces", "-o", "wide"), end="")

    def _recorded(self):
        try:
            return json.loads(self._record.read_text())
        except OSError:
            raise Failure(f"no cluster in {self.state}: `e2e/cluster up` makes one") from None

    def _problem(self, wanted):
        """Why the cluster that is there cannot be used; empty when it can."""
        if not self.exists():
            return "no complete state"
        if self._recorded() != wanted:
            return "it was made with other binaries, other addresses or another number of nodes"
        ended = [p.name for p in self.processes.all() if not p.alive()]
        if ended:
            return f"{', '.join(ended)} ended"
        kubectl = self.kubectl()
        if not kubectl.ready():
            return "its API server does not answer"
        if _ready_nodes(kubectl) != wanted["nodes"]:
            return "not all nodes are ready"
        return "" if _dns_available(kubectl) else "its DNS is not available"

    def _start(self, programs, archives):
        first_node, *_ = nodes = self.nodes()
        plane = ControlPlane(self.state, programs, self.processes,
                             Endpoints(API_PORT, ETCD_PORT, ETCD_PEER_PORT, first_node.network.address))
        for node in nodes:
            with step(f"starting containerd of {node.name}"):
                node.start_containerd(self.processes)
                images.load(node, self.state, archives)
        network.create_routes(first_node.network, self.state)
        with step("starting etcd and the API server"):
            kubectl = plane.start_api_server()
        plane.start_controllers()
        addons.start_kube_proxy(self.processes, programs, plane.certificates, plane.server, self.state,
                                first_node.name)
        for node in nodes:
            node.start_kubelet(self.processes, programs, plane.certificates, plane.server)
        addons.apply_dns(kubectl)
        self._wait_for(f"{len(nodes)} nodes are ready", lambda: _ready_nodes(kubectl) == len(nodes),
                       NODES_READY_SECONDS, lambda: kubectl("describe", "nodes", check=False))
        self._wait_for("cluster DNS answers", lambda: _dns_available(kubectl), DNS_READY_SECONDS,
                       lambda: kubectl("describe", "pods", "-n", "kube-system", check=False))

    def _wait_for(self, what, condition, seconds, explain):
        def holds():
            self.processes.check_alive()
            return condition()

        with step(f"waiting until {what}"):
            wait_until(what, holds, seconds, explain)


def _ready_nodes(kubectl):
    conditions = [c for node in kubectl.get("nodes")["items"] for c in node["status"].get("conditions", [])]
    return sum(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _dns_available(kubectl):
    deployment = json.loads(kubectl("get", "deployment", "-n", "kube-system", "coredns", "-o", "json", check=False)
                            or "{}")
    return deployment.get("status", {}).get("availableReplicas", 0) > 0


def _refuse_beside_another_cluster(ours):
    """Another kubelet's firewall rules and ours cannot live side by side on one machine."""
    known = {p.pid for p in ours.all()}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            program = (folder / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
        except OSError:
            continue
        if os.path.basename(program) in ("kubelet", "k3s") and int(folder.name) not in known:
            raise Failure(f"{program} (pid {folder.name}) runs on this machine: stop that cluster first"
                          " (if it is ours from another FLAMEFLEET_STATE: `e2e/cluster down` with that value)")
