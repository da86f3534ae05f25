# SPDX-License-Identifier: Apache-2.0
"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler: their certificates, flags and start."""

from dataclasses import dataclass

from .certificates import Authority
from .kubectl import Kubectl
from .progress import wait_until

SERVICE_RANGE = "10.96.0.0/24"
API_SERVICE_ADDRESS = "10.96.0.1"  # the first of the range: where pods find the API server
READY_SECONDS = 120


@dataclass(frozen=True)
class Endpoints:
    """Where the servers listen."""
    api_port: int
    etcd_port: int
    etcd_peer_port: int
    api_address: str  # what pods are told to connect to


class ControlPlane:
    """The servers of one state folder. `processes` starts them; nothing here ends them."""

    def __init__(self, state, binaries, processes, endpoints, die_with_parent=False):
        self._state = state
        self._binaries = binaries
        self._processes = processes
        self._at = endpoints
        self._die_with_parent = die_with_parent
        self.server = f"https://127.0.0.1:{endpoints.api_port}"
        self.certificates = Authority(state / "pki")

    def make_credentials(self):
        issue = self.certificates.issue
        names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
                 "localhost"]
        addresses = dict.fromkeys(["127.0.0.1", API_SERVICE_ADDRESS, self._at.api_address])
        issue("apiserver", "kube-apiserver", addresses=[f"DNS:{n}" for n in names] + [f"IP:{a}" for a in addresses])
        issue("admin", "admin", "system:masters")
        self.certificates.signing_key("service-account")
        return self.certificates.kubeconfig("admin", self.server, "admin")

    def start_api_server(self, extra_flags=()):
        """Starts etcd and the API server, waits until it is ready, and returns the admin's kubectl."""
        kubeconfig = self.make_credentials()
        self._start("etcd", *self._etcd_flags())
        self._start("kube-apiserver", *self._api_server_flags(), *extra_flags)
        kubectl = Kubectl(self._binaries, kubeconfig)

        def ready():
            self._processes.check_alive()
            return kubectl.ready()

        wait_until("the API server is ready", ready, READY_SECONDS,
                   lambda: self._processes.find("kube-apiserver").last_lines())
        return kubectl

    def start_controllers(self):
        """Starts kube-controller-manager and kube-scheduler."""
        self.start_controller_manager()
        self._start("kube-scheduler", f"--kubeconfig={self._controller_credentials('kube-scheduler')}",
                    f"--cert-dir={self._state / 'kube-scheduler'}",
                    "--bind-address=127.0.0.1", "--leader-elect=false")

    def start_controller_manager(self, extra_flags=()):
        file = self.certificates.file
        self._start("kube-controller-manager",
                    f"--kubeconfig={self._controller_credentials('kube-controller-manager')}",
                    f"--service-account-private-key-file={file('service-account.key')}",
                    f"--root-ca-file={file('ca.crt')}",
                    f"--cluster-signing-cert-file={file('ca.crt')}",
                    f"--cluster-signing-key-file={file('ca.key')}",
                    f"--cert-dir={self._state / 'kube-controller-manager'}",
                    "--bind-address=127.0.0.1", "--use-service-account-credentials", "--leader-elect=false",
                    # Minutes by default; a test that loses a node should not wait for that.
                    "--node-monitor-grace-period=20s", *extra_flags)

    def _controller_credentials(self, name):
        self.certificates.issue(name, f"system:{name}")
        return self.certificates.kubeconfig(name, self.server, name)

    def _start(self, name, *flags):
        return self._processes.start(name, [self._binaries / name, *flags], die_with_parent=self._die_with_parent)

    def _etcd_flags(self):
        client = f"http://127.0.0.1:{self._at.etcd_port}"
        peer = f"http://127.0.0.1:{self._at.etcd_peer_port}"
        return ["--name=default", f"--data-dir={self._state / 'etcd'}",
                f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--unsafe-no-fsync"]  # this cluster never outlives its machine

    def _api_server_flags(self):
        file = self.certificates.file
        return [f"--etcd-servers=http://127.0.0.1:{self._at.etcd_port}",
                f"--secure-port={self._at.api_port}", f"--bind-address={self._listen_address()}",
                f"--advertise-address={self._at.api_address}",
                f"--tls-cert-file={file('apiserver.crt')}", f"--tls-private-key-file={file('apiserver.key')}",
                f"--client-ca-file={file('ca.crt')}",
                "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
                f"--service-cluster-ip-range={SERVICE_RANGE}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={file('service-account.pub')}",
                f"--service-account-signing-key-file={file('service-account.key')}",
                f"--kubelet-client-certificate={file('admin.crt')}", f"--kubelet-client-key={file('admin.key')}",
                # The default asks DNS for the node's name first, and there is no such DNS.
                "--kubelet-preferred-address-types=InternalIP",
                "--allow-privileged=true", f"--cert-dir={self._state / 'kube-apiserver'}"]

    def _listen_address(self):
        """All addresses when pods must reach it, else loopback only."""
        return "127.0.0.1" if self._at.api_address == "127.0.0.1" else "0.0.0.0"
