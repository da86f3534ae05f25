# SPDX-License-Identifier: Apache-2.0
"""Operator and agents of two versions work together, as they do while a release is rolled out, and a roll-out loses nothing
that was collected.

The other version's programs are in the folder FF_PREVIOUS_BIN; `make skew PREVIOUS=<commit>` builds them.
"""

import json
import os
import time
from pathlib import Path

from clusterlib import images
from clusterlib.fleet import NAMESPACE
from scenarios.support import WINDOW_SECONDS, Scenario

PREVIOUS_IMAGE = "docker.io/library/flamefleet-previous:dev"
# An agent is away for seconds: this share of what a workload used in the time of a roll-out is in the store.
LEAST = 0.6


class Skew(Scenario):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        previous = Path(os.environ["FF_PREVIOUS_BIN"]).resolve()
        cls.fleet.cluster.load(images.flamefleet_archive(PREVIOUS_IMAGE, previous))

    def roll(self, *, operator, agents):
        """Both get their images; returns when all pods run them and the pool is ready."""
        self.kubectl("patch", "agentpool", "default", "--type=merge", "-p",
                     json.dumps({"spec": {"image": agents, "imagePullPolicy": "Never"}}))
        self.kubectl("set", "image", "-n", NAMESPACE, "deployment/flamefleet-operator", f"operator={operator}")
        self.kubectl("rollout", "status", "-n", NAMESPACE, "deployment/flamefleet-operator", "--timeout=120s")
        self.eventually("every pod runs its image", lambda: self.images("operator") == {operator} and
                        self.images("agent") == {agents})
        # The managed store is of the operator's image: it is replaced, too.
        self.eventually("the store runs its image and answers",
                        lambda: self.images("store") == {operator} and self.store_answers())
        self.eventually("the pool is ready", lambda: self.fleet.condition("agentpool", "default"))
        self.eventually("the backend is ready", lambda: self.fleet.condition("profilingbackend", "default"))

    def images(self, component):
        pods = self.kubectl.get("pods", "-n", NAMESPACE, "-l", f"app.kubernetes.io/component={component}")["items"]
        return {pod["spec"]["containers"][0]["image"] for pod in pods}

    def store_answers(self):
        """As the version of the operator has it: with TLS and credentials, or without."""
        type(self).store = self.fleet.store()
        try:
            return self.store.get("/types")
        except OSError:
            return None

    def check_profiles(self):
        """Profiles of annotations, of a target and of an endpoint arrive, and the status knows it."""
        since = int(time.time())
        for app in ("annotated", "targeted"):
            self.eventually(f"the hottest function of {app} arrives", lambda: "burn_seventy" in self.cpu(app, since).share)
        self.eventually("pulled profiles arrive", lambda: self.store.top(
            'memory:alloc_space{service_name="gopprof"}', since, unit="B").total > 0)
        self.eventually("the target is ready", lambda: self.fleet.condition("profilingtarget", "targeted", "shop"))

    def test_1_agents_of_the_previous_version_work_with_this_operator(self):
        self.roll(operator=images.FLAMEFLEET_IMAGE, agents=PREVIOUS_IMAGE)
        self.check_profiles()

    def test_2_upgrading_the_agents_loses_no_profile(self):
        apps = ("annotated", "targeted")
        began = int(time.time())
        used = {app: -self.cpu_millis(app) for app in apps}
        self.roll(operator=images.FLAMEFLEET_IMAGE, agents=images.FLAMEFLEET_IMAGE)
        self.check_profiles()
        ended = int(time.time())
        used = {app: used[app] + self.cpu_millis(app) for app in apps}
        self.eventually("what was sampled until then has arrived", lambda: time.time() > ended + 2 * WINDOW_SECONDS)
        for app in apps:
            arrived = self.cpu(app, began, ended).total
            print(f"   {ended - began} s with a roll-out: of {used[app]:.0f} ms CPU of {app} {arrived:.0f} ms arrived")
            self.assertGreater(arrived, LEAST * used[app])
        books = self.eventually("the books balance", self.balanced_books)
        print(f"   the agents of this version found {books['recovered']:.0f} profiles of those before them; dropped: {books['dropped']:.0f}")
        self.assertEqual(books["dropped"], 0, books)

    def test_3_operator_of_the_previous_version_works_with_these_agents(self):
        self.roll(operator=PREVIOUS_IMAGE, agents=images.FLAMEFLEET_IMAGE)
        self.check_profiles()
        self.roll(operator=images.FLAMEFLEET_IMAGE, agents=images.FLAMEFLEET_IMAGE)
        self.check_profiles()
