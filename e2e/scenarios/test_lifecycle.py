# SPDX-License-Identifier: Apache-2.0
"""What changes in the cluster changes what is collected, and nothing else."""

import time

from clusterlib.fleet import INSTALLED, NAMESPACE, TARGET
from scenarios.support import WINDOW_SECONDS, Scenario


class Lifecycle(Scenario):
    def wait_delivering(self, app):
        since = int(time.time())
        self.eventually(f"profiles of {app} arrive", lambda: self.cpu(app, since).total > 0)

    def wait_stopped(self, app, other):
        """Two windows pass in which `app` runs and is not profiled, while `other` is."""
        def quiet_windows():
            end = int(time.time()) - WINDOW_SECONDS  # what was sampled before this has arrived
            begin = end - 2 * WINDOW_SECONDS
            return self.cpu(app, begin, end).total == 0 and self.cpu(other, begin, end).total > 0

        self.eventually(f"no profiles of {app} arrive any more", quiet_windows)
        self.pod_name(app)

    def test_removing_the_annotation_stops_collection(self):
        self.wait_delivering("annotated")
        pod = self.pod_name("annotated")
        self.kubectl("annotate", "pod", "-n", "shop", pod, "pyroscope.io/scrape-")
        self.wait_stopped("annotated", other="targeted")
        self.kubectl("annotate", "pod", "-n", "shop", pod, "pyroscope.io/scrape=true")
        self.wait_delivering("annotated")

    def test_deleting_the_target_stops_collection(self):
        self.wait_delivering("targeted")
        self.kubectl("delete", "-f", TARGET)
        self.wait_stopped("targeted", other="annotated")
        self.kubectl("apply", "-f", TARGET)
        self.wait_delivering("targeted")

    def test_new_pod_of_a_deployment_is_picked_up(self):
        self.kubectl("scale", "deployment", "-n", "shop", "annotated", "--replicas=2")
        self.addCleanup(self.kubectl, "scale", "deployment", "-n", "shop", "annotated", "--replicas=1")
        self.eventually("two pods run", lambda: len([
            pod for pod in self.pods("annotated") if pod["status"]["phase"] == "Running"]) == 2)
        for pod in self.pods("annotated"):
            query = f'process_cpu:cpu{{namespace="shop", pod="{pod["metadata"]["name"]}"}}'
            self.eventually(f"profiles of {query} arrive", lambda: self.store.top(query, self.since).total > 0)

    def test_deleting_the_pool_removes_its_agents(self):
        self.addCleanup(self.wait_delivering, "annotated")
        self.addCleanup(self.kubectl, "apply", "-k", INSTALLED)
        self.kubectl("delete", "agentpool", "default")
        self.eventually("no agent runs", lambda: not self.kubectl.get("daemonsets,pods", "-n", NAMESPACE, "-l",
                                                                      "app.kubernetes.io/component=agent")["items"])
