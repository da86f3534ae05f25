# SPDX-License-Identifier: Apache-2.0
"""A Prometheus that takes of all pods and Services of the cluster those that the ServiceMonitor and the PodMonitor of
config/prometheus say is asked what the dashboards and the rules ask."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import yaml

from clusterlib import paths
from clusterlib.fleet import NAMESPACE
from clusterlib.ports import Ports
from clusterlib.prometheus import RULES, Prometheus, queries
from scenarios.support import Scenario

MONITORS = paths.REPOSITORY / "config" / "prometheus"


def meta(kind, name, value):
    return {f"__meta_kubernetes_{kind}_{re.sub(r'[^a-zA-Z0-9_]', '_', name)}": value}


def labels_of(kind, item):
    found = {}
    for name, value in item["metadata"].get("labels", {}).items():
        found |= meta(f"{kind}_label", name, value)
    return found


def pod_targets(kubectl):
    """Each port of each pod, as Prometheus' own discovery of pods gives it. Debian's is built without that."""
    return [{"targets": [f"{pod['status']['podIP']}:{port['containerPort']}"],
             "labels": {**labels_of("pod", pod), **meta("pod", "node_name", pod["spec"]["nodeName"]),
                        **meta("pod", "container_port_name", port.get("name", ""))}}
            for pod in kubectl.get("pods", "-n", NAMESPACE)["items"] if pod["status"].get("podIP")
            for container in pod["spec"]["containers"] for port in container.get("ports", [])]


def endpoint_targets(kubectl):
    """Each port of each address of each Service, as its discovery of endpoints gives it."""
    services = {service["metadata"]["name"]: service for service in kubectl.get("services", "-n", NAMESPACE)["items"]}
    return [{"targets": [f"{address}:{port['port']}"],
             "labels": {**labels_of("service", services[item["metadata"]["labels"]["kubernetes.io/service-name"]]),
                        **meta("endpoint", "port_name", port["name"])}}
            for item in kubectl.get("endpointslices", "-n", NAMESPACE)["items"]
            for endpoint in item["endpoints"] or [] for address in endpoint["addresses"] for port in item["ports"] or []]


def snake_case(name):
    return re.sub(r"(?<=[a-z])([A-Z])", lambda letter: "_" + letter[1].lower(), name)


def scrape_config(monitor, targets):
    """What the Prometheus operator makes of a monitor with one endpoint; `targets`: the file of all that could be scraped."""
    labelled, port, endpoints = {
        "ServiceMonitor": ("service_label", "endpoint_port_name", "endpoints"),
        "PodMonitor": ("pod_label", "pod_container_port_name", "podMetricsEndpoints")}[monitor["kind"]]
    selector = monitor["spec"]["selector"]
    keep = {}
    for name, value in selector.get("matchLabels", {}).items():
        keep |= meta(labelled, name, value)
    for expression in selector.get("matchExpressions", []):
        assert expression["operator"] == "In", expression
        keep |= meta(labelled, expression["key"], "|".join(expression["values"]))
    endpoint, = monitor["spec"][endpoints]
    keep[f"__meta_kubernetes_{port}"] = endpoint["port"]
    return {
        "job_name": monitor["metadata"]["name"], "file_sd_configs": [{"files": [str(targets)]}],
        "relabel_configs": [
            *({"action": "keep", "source_labels": [name], "regex": value} for name, value in keep.items()),
            *({snake_case(key): value for key, value in one.items()} for one in endpoint.get("relabelings", []))]}


class ClusterPrometheus(Scenario):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="flamefleet-prometheus-")))
        cls.discover()
        monitors = [yaml.safe_load((MONITORS / f"{kind}_monitor.yaml").read_text()) for kind in ("service", "pod")]
        ports = cls.ports = Ports()  # it stays ours as long as that lives
        cls.prometheus = Prometheus(folder, ports.take(),
                                    [scrape_config(monitor, folder / f"{monitor['kind']}.json") for monitor in monitors])
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *cls.prometheus.argv], stdout=log, stderr=log)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        cls.fleet.wait("Prometheus is ready", cls.prometheus.ready)

    @classmethod
    def discover(cls):
        """Prometheus reads the files again when they change."""
        for kind, targets in (("ServiceMonitor", endpoint_targets), ("PodMonitor", pod_targets)):
            partial = cls.folder / f"{kind}.partial"
            partial.write_text(json.dumps(targets(cls.kubectl)))
            partial.rename(cls.folder / f"{kind}.json")

    def test_each_pod_of_ours_is_scraped(self):
        def scraped():
            self.discover()
            pods = self.kubectl.get("pods", "-n", NAMESPACE)["items"]
            up = {sample["metric"]["instance"].partition(":")[0] for sample in self.prometheus.query("up == 1")}
            return len(pods) >= 4 and up == {pod["status"].get("podIP") for pod in pods}
        self.eventually("operator, both agents and the store are scraped, and nothing else", scraped)
        nodes = {sample["metric"]["node"] for sample in self.prometheus.query('flamefleet_agent_control_connected == 1')}
        self.assertEqual(nodes, {node.name for node in self.fleet.cluster.nodes()})

    def test_every_query_of_every_dashboard_has_an_answer(self):
        for board, panel, expression in queries():
            with self.subTest(board, panel=panel, query=expression):
                self.eventually(f"{board}, {panel}: there is data of {expression}",
                                lambda expression=expression: self.prometheus.query(expression))

    def test_every_rule_is_evaluated(self):
        rules = self.eventually("every rule was evaluated", self.prometheus.evaluated_rules)
        self.assertEqual({rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"}, {})
        self.assertEqual(len(rules), sum(len(group["rules"]) for group in RULES["groups"]))
