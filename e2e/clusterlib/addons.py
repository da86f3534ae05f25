# SPDX-License-Identifier: Apache-2.0
"""What turns the control plane and two kubelets into a cluster that programs can use: kube-proxy and DNS."""

import json

from .images import COREDNS_IMAGE
from .network import POD_RANGE
from .node import CLUSTER_DNS

_COREFILE = """.:53 {
  errors
  health :8080
  ready :8181
  kubernetes cluster.local in-addr.arpa ip6.arpa
  cache 30
  reload
}
"""


def start_kube_proxy(processes, binaries, certificates, server, state, node_name):
    """One for both nodes: they share the machine's network."""
    certificates.issue("kube-proxy", "system:kube-proxy")
    kubeconfig = certificates.kubeconfig("kube-proxy", server, "kube-proxy")
    config = state / "kube-proxy.json"
    config.write_text(json.dumps({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
        "clientConnection": {"kubeconfig": str(kubeconfig)}, "clusterCIDR": POD_RANGE, "hostnameOverride": node_name,
        "healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249",
        # The machine's own limits stay as they are.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }, indent=1))
    return processes.start("kube-proxy", [binaries / "kube-proxy", f"--config={config}"])


def apply_dns(kubectl):
    labels = {"k8s-app": "kube-dns"}
    meta = {"name": "coredns", "namespace": "kube-system"}

    def port(name, number, protocol):
        return {"name": name, "port": number, "protocol": protocol}

    kubectl.apply([
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:coredns"},
         "rules": [
             {"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["list", "watch"]},
             {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}]},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
         "metadata": {"name": "system:coredns"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
         "subjects": [{"kind": "ServiceAccount", **meta}]},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"Corefile": _COREFILE}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "serviceAccountName": "coredns", "dnsPolicy": "Default",
                "priorityClassName": "system-cluster-critical",
                "containers": [{
                    "name": "coredns", "image": COREDNS_IMAGE, "imagePullPolicy": "Never",
                    "args": ["-conf", "/etc/coredns/Corefile"],
                    "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 2},
                    "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}]}],
                "volumes": [{"name": "config", "configMap": {"name": "coredns"}}]}}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {**meta, "name": "kube-dns"}, "spec": {
            "clusterIP": CLUSTER_DNS, "selector": labels,
            "ports": [port("dns", 53, "UDP"), port("dns-tcp", 53, "TCP")]}},
    ])
