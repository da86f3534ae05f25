# SPDX-License-Identifier: Apache-2.0
"""Pod Security: of what Flamefleet runs, only the agents need more than the level `restricted`."""

import re
import subprocess

from clusterlib.fleet import NAMESPACE
from scenarios.support import Scenario

LEVEL = "pod-security.kubernetes.io/enforce"
RESTRICTED = ("operator", "store")


class PodSecurity(Scenario):
    def pods(self, component):
        """uid -> whether it is ready, of those that are not on their way out"""
        pods = self.kubectl.get("pods", "-n", NAMESPACE, "-l", f"app.kubernetes.io/component={component}")["items"]
        return {pod["metadata"]["uid"]: any(one["type"] == "Ready" and one["status"] == "True"
                                            for one in pod["status"].get("conditions", []))
                for pod in pods if "deletionTimestamp" not in pod["metadata"]}

    def enforce(self, level):
        """The API server's warnings of the pods that are there."""
        done = subprocess.run([self.kubectl.binary, "label", "namespace", NAMESPACE, "--overwrite", f"{LEVEL}={level}"],
                              env=self.kubectl.environment, text=True, capture_output=True, check=True)
        return done.stderr

    def test_operator_and_store_run_where_pods_are_restricted_and_agents_alone_violate_it(self):
        self.eventually("the fleet is ready", lambda: self.fleet.condition("agentpool", "default"))
        self.addCleanup(self.enforce, self.kubectl.get("namespace", NAMESPACE)["metadata"]["labels"][LEVEL])
        warnings = self.enforce("restricted")
        violators = re.findall(r"^Warning: (\S+?)(?: \(and \d+ other pods?\))?: ", warnings, re.MULTILINE)
        self.assertTrue(violators, warnings)
        self.assertEqual([name for name in violators if not name.startswith("flamefleet-agent-default-")], [], warnings)

        before = {component: set(self.pods(component)) for component in RESTRICTED}
        for component in RESTRICTED:
            self.kubectl("delete", "pods", "-n", NAMESPACE, "-l", f"app.kubernetes.io/component={component}")
        for component in RESTRICTED:
            self.eventually(f"another pod of the {component} is ready", lambda component=component: any(
                ready for uid, ready in self.pods(component).items() if uid not in before[component]))
        self.eventually("profiles arrive", lambda: self.cpu("targeted", self.since).total > 0)
