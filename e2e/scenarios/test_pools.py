# SPDX-License-Identifier: Apache-2.0
"""What an AgentPool says about its agents when they cannot do their work, and what else goes on meanwhile."""

import json

from scenarios.support import Scenario, apply


class Pools(Scenario):
    def condition(self, pool, kind):
        """The condition of a pool; empty when it has none of this type."""
        conditions = self.kubectl.get("agentpool", pool).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})

    def patch(self, pool, spec):
        self.kubectl("patch", "agentpool", pool, "--type=merge", "-p", json.dumps({"spec": spec}))

    def test_second_pool_on_the_nodes_is_a_conflict_and_changes_nothing(self):
        self.addCleanup(self.kubectl, "delete", "agentpool", "second", "--ignore-not-found")
        apply(self.kubectl, {"apiVersion": "flamefleet.dev/v1alpha1", "kind": "AgentPool",
                             "metadata": {"name": "second"}, "spec": {"podLabels": {"example.com/team": "second"}}})
        nodes = [node["metadata"]["name"] for node in self.kubectl.get("nodes")["items"]]
        self.eventually("the second pool names the nodes of the first", lambda: all(
            node in self.condition("second", "Conflict").get("message", "") for node in nodes))
        self.assertEqual(self.condition("second", "Stalled")["reason"], "Conflict")
        self.assertEqual(self.condition("default", "Conflict"), {})
        self.eventually("the first pool's agents profile on", lambda: self.cpu("annotated", self.since).total > 0)
        self.assertEqual(self.condition("default", "Ready")["status"], "True")

    def test_image_that_cannot_be_had_is_said_in_plain_words(self):
        self.addCleanup(self.kubectl, "wait", "--for=condition=Ready", "agentpool", "default", "--timeout=120s")
        self.addCleanup(self.patch, "default", {"image": None, "imagePullPolicy": None})
        self.patch("default", {"image": "flamefleet:missing", "imagePullPolicy": "Never"})
        self.eventually("the pool is stalled by its image",
                        lambda: self.condition("default", "Stalled").get("reason") == "ImageNotPulled")
        self.assertIn("look at spec.image", self.condition("default", "Ready")["message"])
