# SPDX-License-Identifier: Apache-2.0
"""One node: its containerd and its kubelet, with all their files in one folder."""

import json

from . import cgroups
from .images import PAUSE_IMAGE
from .network import CNI_PLUGINS, NodeNetwork, has_ipv6
from .progress import wait_until
from .shell import run

CLUSTER_DNS = "10.96.0.10"
# Name of the handler for a RuntimeClass whose pods have an IPv6 address alone.
IPV6_RUNTIME = "ipv6"
CONTAINERD_SECONDS = 30
_FIRST_KUBELET_PORT = 10250
_FIRST_KUBELET_HEALTH_PORT = 10350


class Node:
    def __init__(self, number, state):
        self.number = number
        self.name = f"node-{number}"
        self.network = NodeNetwork(number)
        self.cgroup_root = f"{cgroups.PREFIX}{number}"
        self._folder = state / self.name
        self.socket = self._folder / "containerd.sock"

    def ctr(self, *argv, check=True):
        return run("ctr", "--address", self.socket, "--namespace", "k8s.io", *argv, check=check)

    def start_containerd(self, processes):
        self._folder.mkdir(parents=True)
        self.network.create()
        self.network.write_cni_config(self._folder / "cni", self._folder)
        if has_ipv6():
            self.network.write_cni_config_of_ipv6_alone(self._folder / "cni-ipv6", self._folder)
        config = self._folder / "containerd.toml"
        config.write_text(self._containerd_config())
        process = processes.start(f"containerd-{self.number}", ["containerd", "--config", config])

        def answers():
            processes.check_alive()
            return "Server:" in self.ctr("version", check=False)

        wait_until(f"containerd of {self.name} answers", answers, CONTAINERD_SECONDS, process.last_lines)

    def start_kubelet(self, processes, binaries, certificates, server):
        cgroups.create(self.cgroup_root)
        user = f"kubelet-{self.number}"
        certificates.issue(user, f"system:node:{self.name}", "system:nodes",
                           [f"DNS:{self.name}", f"IP:{self.network.address}"])
        kubeconfig = certificates.kubeconfig(user, server, user)
        config = self._folder / "kubelet.json"
        config.write_text(json.dumps(self._kubelet_config(certificates, user), indent=1))
        processes.start(user, [binaries / "kubelet", f"--config={config}", f"--kubeconfig={kubeconfig}",
                               f"--hostname-override={self.name}", f"--node-ip={self.network.address}",
                               f"--root-dir={self._folder / 'kubelet'}", f"--cert-dir={self._folder / 'kubelet-pki'}"])

    def _containerd_config(self):
        # restrict_oom_score_adj: lowering the score needs CAP_SYS_RESOURCE, which containers and VMs often lack.
        # netns_mounts_under_state_dir: so that removing the state finds the network namespaces as well.
        return f"""version = 2
root = "{self._folder}/containerd-root"
state = "{self._folder}/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt"]
[grpc]
address = "{self.socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{self._folder}/cni"
""" + self._runtime("runc") + (self._runtime(IPV6_RUNTIME, f'cni_conf_dir = "{self._folder}/cni-ipv6"')
                               if has_ipv6() else "")

    def _runtime(self, name, settings=""):
        return f"""[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{name}]
runtime_type = "io.containerd.runc.v2"
{settings}
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{name}.options]
SystemdCgroup = false
Root = "{self._folder}/runc"
"""

    def _kubelet_config(self, certificates, user):
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "address": self.network.address, "port": _FIRST_KUBELET_PORT + self.number,
            "healthzBindAddress": "127.0.0.1", "healthzPort": _FIRST_KUBELET_HEALTH_PORT + self.number,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": str(certificates.file("ca.crt"))}},
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(certificates.file(f"{user}.crt")),
            "tlsPrivateKeyFile": str(certificates.file(f"{user}.key")),
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.cgroup_root}", "enforceNodeAllocatable": [],
            "failCgroupV1": False, "failSwapOn": False, "oomScoreAdj": 0,
            "clusterDNS": [CLUSTER_DNS], "clusterDomain": "cluster.local", "resolvConf": "",
            # A full disk of the machine is not this cluster's business.
            "evictionHard": {"imagefs.available": "1%", "nodefs.available": "1%", "memory.available": "100Mi"},
            "imageGCHighThresholdPercent": 100,
            "podLogsDir": str(self._folder / "pod-logs"), "volumePluginDir": str(self._folder / "volume-plugins"),
            "syncFrequency": "10s",
        }
