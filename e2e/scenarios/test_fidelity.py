# SPDX-License-Identifier: Apache-2.0
"""Programs whose profile is known, in containers, seen by the agent of a DaemonSet with its capabilities alone.

How exact shares are is judged by tests/fidelity with many more samples; here it is that stacks are whole and named.
"""

import time

from clusterlib import images, paths
from scenarios.support import FREQUENCY_HZ, WINDOW_SECONDS, Scenario, profiling_target

PROGRAMS = images.BUILT_HERE
SOURCES = paths.REPOSITORY / "tests" / "fidelity"
LATE = PROGRAMS.parent / "tests" / "fidelity" / "libshares_late_call.so"
# By container: what it runs, and functions that nearly all of its samples must be below.
CONTAINERS = {
    "plain": (["shares_plain", "plain"], ["Outer", "Hop"]),
    "static": (["shares_static", "plain"], ["Outer", "Hop"]),
    "stripped": (["shares_stripped", "plain"], ["Outer", "Hop"]),
    "signal": (["shares_signal", "signal"], ["Outer", "Interrupted"]),
    "deep": (["shares_deep", "deep"], ["Outer", "Recurse"]),
    "late": (["shares_late", "late", str(LATE)], ["Outer", "LateCall"]),
    "exec": (["shares_exec", "exec", str(PROGRAMS / "shares_after")], ["Outer", "Hop"]),
}
NODE = ["/usr/bin/node", "--perf-basic-prof", "--no-opt", "--always-sparkplug", str(SOURCES / "shares.js")]
# Of so many samples the share of Seventy has a standard deviation of 2.3 points.
ENOUGH_MILLISECONDS = 1000 * 400 / FREQUENCY_HZ
TOLERANCE_POINTS = 13
LEAST_PERCENT = 95  # below the known functions; others wait for input and compute the next step
WHOLE_PERCENT = 99
DEADLINE_SECONDS = 400


class Fidelity(Scenario):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.kubectl, "delete", "pod,profilingtarget", "fidelity", "-n", "shop", "--wait=false")
        self.kubectl.apply([pod(), profiling_target("fidelity", "fidelity", [{"type": "cpu", "threadLabels": True}])])

    def top(self, container, since):
        return self.store.top(f'process_cpu:cpu{{namespace="shop", pod="fidelity", container="{container}"}}', since)

    def test_stacks_are_whole_and_named(self):
        for container in [*CONTAINERS, "node"]:
            self.eventually(f"{container} is profiled", lambda: self.top(container, self.since).total > 0,
                            DEADLINE_SECONDS)
        # Whole windows, in which all code is there and known.
        began = int(time.time()) + 2 * WINDOW_SECONDS
        self.eventually("these windows begin", lambda: time.time() > began)
        for container in [*CONTAINERS, "node"]:
            with self.subTest(container=container):
                top = self.eventually(f"enough samples of {container} are in the store", lambda: (
                    top := self.top(container, began)).total >= ENOUGH_MILLISECONDS and top, DEADLINE_SECONDS)
                if container == "node":
                    self.check_node(top)
                else:
                    self.check(top, ["main", *CONTAINERS[container][1]])

    def check(self, top, callers):
        self.assertAlmostEqual(top.share.get("Seventy", 0), 70, delta=TOLERANCE_POINTS, msg=top.share)
        self.assertGreaterEqual(top.share.get("_start", 0), WHOLE_PERCENT, top.share)
        for name in callers:
            self.assertGreaterEqual(top.share.get(name, 0), LEAST_PERCENT, top.share)

    def check_node(self, top):
        def below(function):
            return sum(share for name, share in top.share.items() if name.startswith("JS:") and f"{function} " in name)
        self.assertAlmostEqual(below("Seventy"), 70, delta=TOLERANCE_POINTS, msg=top.share)
        self.assertGreaterEqual(below("Middle"), LEAST_PERCENT, top.share)


def pod():
    """The image has nothing that these programs need, so the files of this machine are mounted, each in its place."""
    mounts = {"programs": (PROGRAMS.parent, PROGRAMS.parent), "sources": (SOURCES, SOURCES), "usr": ("/usr", "/usr"),
              "lib": ("/usr/lib", "/lib"), "lib64": ("/usr/lib64", "/lib64")}
    commands = {name: [str(PROGRAMS / program[0]), *program[1:]] for name, (program, _) in CONTAINERS.items()}
    commands["node"] = NODE
    mounted = [{"name": "tmp", "mountPath": "/tmp"},
               *({"name": name, "mountPath": str(path), "readOnly": True} for name, (_, path) in mounts.items())]
    containers = [{
        "name": name, "image": "flamefleet-burn:dev", "imagePullPolicy": "Never", "command": command,
        "stdin": True,  # the programs run until it ends
        "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "150m", "memory": "128Mi"}},
        "volumeMounts": mounted,
    } for name, command in commands.items()]
    volumes = [{"name": "tmp", "emptyDir": {}},
               *({"name": name, "hostPath": {"path": str(path)}} for name, (path, _) in mounts.items())]
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "fidelity", "namespace": "shop", "labels": {"app": "fidelity"}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": containers, "volumes": volumes}}
