# SPDX-License-Identifier: Apache-2.0
"""What all scenarios share. They wait for conditions with a deadline and never assert how long something took."""

import json
import os
import re
import time
import unittest
import urllib.request
from pathlib import Path

from clusterlib.cluster import Cluster
from clusterlib.fleet import NAMESPACE, Fleet
from clusterlib.progress import wait_until

# An agent pushes what it sampled once per window; a series appears or ends at the latest two windows after its cause.
WINDOW_SECONDS = 10
# Enough samples in a minute for shares that are right within a few points.
FREQUENCY_HZ = 97
DEADLINE_SECONDS = 120
TICKS_PER_MILLI = os.sysconf("SC_CLK_TCK") / 1000
_SAMPLE = re.compile(r"^(flamefleet_agent_(?:profiles_\w+|memory_used_bytes))(?:\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)


class Scenario(unittest.TestCase):
    """A test on the installed fleet. `self.since` is the time at which the test began."""

    longMessage = True

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(Cluster())
        cls.kubectl = cls.fleet.kubectl
        cls.fleet.apply_workloads()
        cls.kubectl("patch", "agentpool", "default", "--type=merge", "-p",
                    json.dumps({"spec": {"sampling": {"frequency": FREQUENCY_HZ}}}))
        cls.store = cls.fleet.store()

    def setUp(self):
        self.since = int(time.time())

    def eventually(self, what, condition, seconds=DEADLINE_SECONDS):
        return wait_until(what, condition, seconds, self.fleet.describe)

    def target(self, name, namespace="shop"):
        return self.kubectl.get("profilingtarget", "-n", namespace, name)

    def pods(self, app):
        return [pod for pod in self.kubectl.get("pods", "-n", "shop", "-l", f"app={app}")["items"]
                if "deletionTimestamp" not in pod["metadata"]]

    def pod_name(self, app):
        """The name of the one running pod of a workload."""
        running = self.eventually(f"one pod of {app} runs", lambda: [
            pod for pod in self.pods(app) if pod["status"]["phase"] == "Running"])
        self.assertEqual(len(running), 1)
        return running[0]["metadata"]["name"]

    def cpu(self, app, since, until="now"):
        """The merged CPU profile of everything that ever ran under a workload's name."""
        return self.store.top(f'process_cpu:cpu{{namespace="shop", pod=~"{app}-.*"}}', since, until)

    def cpu_millis(self, app):
        """CPU time that the one pod of `burn` has used, as the kernel accounts it."""
        uid = self.pods(app)[0]["metadata"]["uid"]
        pid, = processes("/burn", uid)
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / TICKS_PER_MILLI

    def agent_pods(self):
        return self.kubectl.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=agent")["items"]

    def books(self):
        """Sums over all agents of what was produced, delivered, dropped, ... and what waits, and of their memory."""
        sums = {}
        for pod in self.agent_pods():
            with urllib.request.urlopen(f"http://{pod['status']['podIP']}:9090/metrics", timeout=20) as answer:
                for name, value in _SAMPLE.findall(answer.read().decode()):
                    sums[name] = sums.get(name, 0) + float(value)
        return {name.removeprefix("flamefleet_agent_").removeprefix("profiles_").removesuffix("_total"): value
                for name, value in sums.items()}

    def balanced_books(self):
        """They, once each profile that came has gone or waits."""
        books = self.books()
        came = books["produced"] + books["recovered"] + books["split"]
        return came == books["delivered"] + books["dropped"] + books["waiting"] and books


def processes(program, in_cgroup="kubepods"):
    """PIDs of a program that runs in a pod, or in the one whose UID is given."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = path.read_bytes().split(b"\0")
            cgroup = path.with_name("cgroup").read_text()
        except OSError:
            continue  # it has just ended
        if in_cgroup in cgroup and argv[0].endswith(program.encode()):
            yield int(path.parent.name)


def apply(kubectl, *objects):
    kubectl.apply(list(objects))


def profiling_target(name, app, profiles):
    return {"apiVersion": "flamefleet.dev/v1alpha1", "kind": "ProfilingTarget",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"app": app}}, "profiles": profiles}}
