# SPDX-License-Identifier: Apache-2.0
"""Flamefleet in the cluster: installs config/default and the sample workloads, and asks them how they are."""

import base64
import json

from . import images, paths
from .progress import Failure, step, wait_until
from .store import Store

NAMESPACE = "flamefleet-system"
STORE_SERVICE = "flamefleet-store-default"
STORE_READER = "flamefleet-store-default-reader"
STORE_PORT = 4443
INSTALLED = paths.REPOSITORY / "config" / "default"
WORKLOADS = paths.E2E / "manifests" / "workloads.yaml"
TARGET = paths.E2E / "manifests" / "target.yaml"
READY_SECONDS = 120


class Fleet:
    def __init__(self, cluster):
        self.cluster = cluster
        self.kubectl = cluster.kubectl()

    def install(self):
        """Brings the images and config/default into the cluster; pods of an older image are replaced."""
        changed = self.cluster.load({**images.flamefleet_archive(), **images.workload_archives()})
        with step("applying config/default"):
            self.kubectl("apply", "-k", INSTALLED)
        if images.FLAMEFLEET_IMAGE in changed:
            self.kubectl("delete", "pods", "--all", "-n", NAMESPACE)
        if images.BURN_IMAGE in changed or images.GOPPROF_IMAGE in changed:
            self.kubectl("delete", "pods", "--all", "-n", "shop", "--ignore-not-found")
        self.wait("the operator runs", lambda: self._available("flamefleet-operator"))
        self.wait("the AgentPool and the ProfilingBackend are ready",
                  lambda: self.condition("agentpool", "default") and self.condition("profilingbackend", "default"))

    def apply_workloads(self):
        with step("applying the sample workloads"):
            self.kubectl("apply", "-f", WORKLOADS, "-f", TARGET)
            self.kubectl("wait", "-n", "shop", "--for=condition=Available", "deployment", "--all",
                         f"--timeout={READY_SECONDS}s")

    def condition(self, kind, name, namespace=None, condition="Ready"):
        """Whether a condition of an object is True for the spec that the object has now."""
        scope = ["-n", namespace] if namespace else []
        found = self.kubectl("get", kind, name, *scope, "-o", "json", "--ignore-not-found")
        if not found:
            return False
        status = json.loads(found).get("status", {})
        generation = json.loads(found)["metadata"]["generation"]
        return any(c["type"] == condition and c["status"] == "True" and c["observedGeneration"] == generation
                   for c in status.get("conditions", []))

    def store(self):
        """The managed store, through its Service."""
        service = self.kubectl.get("service", "-n", NAMESPACE, STORE_SERVICE)
        if not any(port["name"] == "https" for port in service["spec"]["ports"]):  # of an earlier version (test_skew)
            return Store(f"http://{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}")
        password = base64.b64decode(self.kubectl.get("secret", "-n", NAMESPACE, STORE_READER)["data"]["password"]).decode()
        authority = self.kubectl.get("configmap", "-n", NAMESPACE, "flamefleet-operator-trust")["data"]["ca.crt"]
        return Store(f"https://{service['spec']['clusterIP']}:{STORE_PORT}", password, authority)

    def wait(self, what, condition, seconds=READY_SECONDS):
        with step(f"waiting until {what}"):
            wait_until(what, condition, seconds, self.describe)

    def describe(self):
        """What a person would look at first when something does not come up."""
        look_at = [["get", "pods,daemonsets,deployments", "-A", "-o", "wide"],
                   ["get", "profilingtargets,profilingbackends,agentpools", "-A", "-o", "yaml"],
                   ["get", "events", "-n", NAMESPACE, "--sort-by=.lastTimestamp"],
                   ["logs", "-n", NAMESPACE, "deployment/flamefleet-operator", "--tail=40"],
                   ["logs", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=agent", "--prefix", "--tail=20"]]
        return "\n".join(f"$ kubectl {' '.join(argv)}\n{self._try(argv)}" for argv in look_at)

    def _try(self, argv):
        try:
            return self.kubectl(*argv)
        except Failure as failure:
            return str(failure)

    def _available(self, deployment):
        status = self.kubectl.get("deployment", "-n", NAMESPACE, deployment).get("status", {})
        return status.get("availableReplicas", 0) > 0
