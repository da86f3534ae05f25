# SPDX-License-Identifier: Apache-2.0
"""The operator writes what it must and only that, goes away and comes back, and tells what is wrong."""

import copy
import json
import time

from clusterlib.fleet import NAMESPACE
from clusterlib.progress import Failure
from scenarios.support import WINDOW_SECONDS, Scenario, apply, profiling_target

OUTAGE_WINDOWS = 4  # of twice WINDOW_SECONDS each, observed from the moment the operator goes
# Objects that the operator makes for the pool and for the managed store.
WRITTEN = "daemonsets,deployments,services,serviceaccounts,configmaps,secrets"


class Operator(Scenario):
    def daemon_set(self):
        items = self.kubectl.get("daemonsets", "-n", NAMESPACE)["items"]
        self.assertEqual(len(items), 1)
        return items[0]

    def wait_rolled_out(self):
        self.eventually("the AgentPool is ready", lambda: self.fleet.condition("agentpool", "default"))
        name = self.daemon_set()["metadata"]["name"]
        self.kubectl("rollout", "status", "daemonset", "-n", NAMESPACE, name, "--timeout=120s")
        self.eventually("targets are profiled", lambda: self.fleet.condition("profilingtarget", "targeted", "shop"))

    def operator_pod(self):
        pods = self.kubectl.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=operator")["items"]
        ready = [p for p in pods if "deletionTimestamp" not in p["metadata"] and
                 any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))]
        return ready[0]["metadata"]["name"] if ready else None

    def replace_operator(self):
        old = self.operator_pod()
        self.kubectl("delete", "pod", "-n", NAMESPACE, old, "--wait=false")
        self.eventually("a new operator is ready", lambda: (new := self.operator_pod()) and new != old)

    def versions(self):
        """resourceVersion of everything that the operator made."""
        items = self.kubectl.get(WRITTEN, "-n", NAMESPACE)["items"]
        return {f"{o['kind']}/{o['metadata']['name']}": o["metadata"]["resourceVersion"] for o in items
                if o["metadata"]["name"] != "flamefleet-operator"}

    def test_resources_of_the_pool_become_the_agents_limits_and_nothing_else_changes(self):
        self.wait_rolled_out()
        before = self.daemon_set()["spec"]
        limits = {"cpu": "700m", "memory": "300Mi"}
        earlier = self.kubectl.get("agentpool", "default")["spec"].get("resources")
        self.addCleanup(self.wait_rolled_out)
        self.addCleanup(self.kubectl, "patch", "agentpool", "default", "--type=merge", "-p",
                        json.dumps({"spec": {"resources": earlier}}))
        self.kubectl("patch", "agentpool", "default", "--type=merge", "-p",
                     json.dumps({"spec": {"resources": {"limits": limits}}}))

        def limits_of(spec):
            return spec["template"]["spec"]["containers"][0]["resources"].get("limits")

        self.eventually("the DaemonSet has the new limits", lambda: limits_of(self.daemon_set()["spec"]) == limits)
        expected = copy.deepcopy(before)
        expected["template"]["spec"]["containers"][0]["resources"]["limits"] = limits
        self.assertEqual(self.daemon_set()["spec"], expected)
        self.wait_rolled_out()

    def test_reconciling_what_is_as_wanted_writes_nothing(self):
        self.wait_rolled_out()
        before = self.versions()
        # A new operator reconciles everything from scratch.
        self.replace_operator()
        self.wait_rolled_out()
        self.assertEqual(self.versions(), before)

    def test_profiles_flow_on_while_the_operator_is_away(self):
        self.wait_rolled_out()
        self.replace_operator()
        self.eventually("the new operator knows what is profiled",
                        lambda: self.fleet.condition("profilingtarget", "targeted", "shop"))
        end = self.since + OUTAGE_WINDOWS * 2 * WINDOW_SECONDS
        self.eventually("the time of the outage is in the store", lambda: time.time() > end + WINDOW_SECONDS,
                        seconds=OUTAGE_WINDOWS * 4 * WINDOW_SECONDS)
        per_window = [self.cpu("targeted", at, at + 2 * WINDOW_SECONDS).total
                      for at in range(self.since, end, 2 * WINDOW_SECONDS)]
        middle = sorted(per_window)[len(per_window) // 2]
        self.assertGreater(min(per_window), middle / 3, f"CPU time per two windows: {per_window}")
        self.assertTrue(self.fleet.condition("profilingtarget", "targeted", "shop"))


class WrongThings(Scenario):
    def test_port_that_refuses_connections_is_told_in_the_status(self):
        apply(self.kubectl, profiling_target("refused", "private", [{"type": "memory", "pull": {"port": 9}}]))
        self.addCleanup(self.kubectl, "delete", "profilingtarget", "-n", "shop", "refused")
        private = self.pod_name("private")

        def refused():
            pods = self.target("refused").get("status", {}).get("failingPods", [])
            return [pod for pod in pods if (pod["name"], pod["reason"]) == (private, "ConnectionRefused")]

        failing = self.eventually("the pod is listed as failing, with the reason", refused)
        self.assertEqual(len(failing), 1)
        self.assertIn(":9", failing[0]["message"])
        self.assertFalse(self.fleet.condition("profilingtarget", "refused", "shop"))

    def test_bad_value_is_refused_with_the_name_of_its_field(self):
        pool = {"apiVersion": "flamefleet.dev/v1alpha1", "kind": "AgentPool", "metadata": {"name": "bad"},
                "spec": {"sampling": {"frequency": 0}}}
        for bad, named in ((pool, "spec.sampling.frequency"),
                           (profiling_target("bad", "private", []), "spec.profiles"),
                           (profiling_target("bad", "private", [{"type": "heap"}]), "spec.profiles[0].type")):
            with self.subTest(field=named), self.assertRaises(Failure) as refused:
                apply(self.kubectl, bad)
            self.assertIn(named, str(refused.exception))
