# SPDX-License-Identifier: Apache-2.0
"""Bridges, routes and firewall rules. Nothing sent to an address of the cluster ever leaves this machine."""

import json
import re
from pathlib import Path

from .controlplane import SERVICE_RANGE
from .progress import Failure
from .shell import run

POD_RANGE = "10.244.0.0/16"
POD_RANGE_IPV6 = "fd00:10:244::/48"
CNI_PLUGINS = Path("/usr/lib/cni")  # Debian's containernetworking-plugins
_IPV6_DISABLED = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")
_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
_BRIDGE_FILTER = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
_BRIDGE = "ffbridge"
_ACCEPT_CHAIN = "CNI-FLAMEFLEET"
_KUBERNETES_RULE = re.compile(r"\b(KUBE|CNI)-")  # a line of iptables-save that Kubernetes or a network plugin made


def has_ipv6():
    """Whether this machine's kernel speaks IPv6; else the cluster's pods have IPv4 addresses alone."""
    return _IPV6_DISABLED.exists() and _IPV6_DISABLED.read_text().strip() == "0"


class NodeNetwork:
    """Addresses and names of node number 1, 2, ..."""

    def __init__(self, number):
        self.bridge = f"{_BRIDGE}{number}"
        self.address = f"10.244.{number}.1"
        self.range = f"10.244.{number}.0/24"
        self.range_ipv6 = f"fd00:10:244:{number}::/64"
        self.name = f"flamefleet-{number}"

    def create(self):
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "address", "add", f"{self.address}/24", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")

    def write_cni_config(self, folder, state):
        """What pods of this node get: an IPv4 address, which is their first, and an IPv6 address."""
        ranges = [self.range, self.range_ipv6] if has_ipv6() else [self.range]
        self._write_cni_config(folder, state, ranges, [{"dst": "0.0.0.0/0"}])

    def write_cni_config_of_ipv6_alone(self, folder, state):
        self._write_cni_config(folder, state, [self.range_ipv6], [])

    def _write_cni_config(self, folder, state, ranges, routes):
        # Not isGateway: the bridge has its address already, and the plugin would make the machine a router of IPv6,
        # which then forgets the default route that its own router told it. IPv6 reaches the pods of one node.
        folder.mkdir(parents=True)
        (folder / "10-flamefleet.conflist").write_text(json.dumps({
            "cniVersion": "1.0.0", "name": self.name, "plugins": [
                {"type": "bridge", "bridge": self.bridge, "hairpinMode": True,
                 "ipam": {"type": "host-local", "dataDir": str(state / "addresses"),
                          "ranges": [[{"subnet": subnet}] for subnet in ranges], "routes": routes}},
                {"type": "portmap", "capabilities": {"portMappings": True}},
            ]}, indent=1))


def create_routes(first_node, state):
    """Lets pods reach each other, and keeps what is meant for the cluster on this machine."""
    if not CNI_PLUGINS.is_dir():
        raise Failure(f"{CNI_PLUGINS} does not exist: run `make deps` (package containernetworking-plugins)")
    (state / "ip_forward").write_text(_FORWARD.read_text())
    _FORWARD.write_text("1")
    if _BRIDGE_FILTER.exists():  # else a Service's answer from a pod of the same bridge is not translated back
        _BRIDGE_FILTER.write_text("1")
    # A pod range without its bridge, and a Service that kube-proxy does not know, must not follow the default route.
    run("ip", "route", "add", "blackhole", POD_RANGE)
    run("ip", "route", "add", SERVICE_RANGE, "dev", first_node.bridge)
    _accept("iptables", POD_RANGE)
    if has_ipv6():
        run("ip", "route", "add", "blackhole", POD_RANGE_IPV6)
        _accept("ip6tables", POD_RANGE_IPV6)  # what goes over a bridge passes the filter as well


def _accept(iptables, pod_range):
    run(iptables, "-w", "-N", _ACCEPT_CHAIN)
    for side in ("-s", "-d"):
        run(iptables, "-w", "-A", _ACCEPT_CHAIN, side, pod_range, "-j", "ACCEPT")
    run(iptables, "-w", "-I", "FORWARD", "-j", _ACCEPT_CHAIN)


def remove(state):
    """Undoes everything of this module, of kube-proxy and of the kubelets, and what a crashed run left."""
    _remove_firewall_rules()
    for name in _bridges():
        run("ip", "link", "delete", name)
    for pod_range in (POD_RANGE, POD_RANGE_IPV6):
        run("ip", "route", "delete", "blackhole", pod_range, check=False)
    earlier = state / "ip_forward"
    if earlier.exists():
        _FORWARD.write_text(earlier.read_text())


def _remove_firewall_rules():
    """Writes each table back without the chains and rules that Kubernetes and its network plugins made."""
    for save, restore in (("iptables-save", "iptables-restore"), ("ip6tables-save", "ip6tables-restore")):
        lines = run(save).splitlines()
        kept = [line for line in lines if not _KUBERNETES_RULE.search(line)]
        if kept != lines:
            run(restore, "-w", input="\n".join(kept) + "\n")


def leftovers():
    """What `remove` would remove."""
    rules = [line for save in ("iptables-save", "ip6tables-save") for line in run(save).splitlines()
             if _KUBERNETES_RULE.search(line)]
    routes = [route for pod_range in (POD_RANGE, POD_RANGE_IPV6)
              for route in run("ip", "route", "show", "type", "blackhole", "exact", pod_range, check=False).splitlines()]
    return ([f"bridge {name}" for name in _bridges()] + [f"route {route}" for route in routes]
            + [f"firewall rule {rule}" for rule in rules])


def _bridges():
    links = json.loads(run("ip", "-json", "link", "show", "type", "bridge") or "[]")
    return [link["ifname"] for link in links if link.get("ifname", "").startswith(_BRIDGE)]
