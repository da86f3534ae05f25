# SPDX-License-Identifier: Apache-2.0
"""Each way to install leads to flame graph data of a workload that had opted in before, and each way to remove it leaves
what was there before.

The time from the first command to the first data is printed.
"""

import tempfile
import time
from pathlib import Path

from clusterlib import binaries, images, paths
from clusterlib.fleet import INSTALLED, NAMESPACE, TARGET
from clusterlib.kubectl import names_of_all_objects
from clusterlib.progress import say, step
from clusterlib.shell import run
from scenarios.support import Scenario

REPOSITORY, _, TAG = images.FLAMEFLEET_IMAGE.partition(":")
KINDS = ["agentpools.flamefleet.dev", "profilingbackends.flamefleet.dev", "profilingtargets.flamefleet.dev"]
VERSION = run(paths.REPOSITORY / "tools" / "version").strip()


class Install(Scenario):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.addClassCleanup(cls.kubectl, "apply", "-f", TARGET)
        cls.addClassCleanup(cls.fleet.install)
        folder = tempfile.TemporaryDirectory(prefix="flamefleet-install-")
        cls.addClassCleanup(folder.cleanup)
        cls.dist = Path(folder.name)
        run(paths.REPOSITORY / "tools" / "dist", "--image", REPOSITORY, "--kubectl", cls.kubectl.binary, "--out", cls.dist)
        for node in cls.fleet.cluster.nodes():
            node.ctr("images", "tag", "--force", images.FLAMEFLEET_IMAGE, f"{REPOSITORY}:{VERSION}")
        with step("removing what the other scenarios use"):
            cls.remove("-k", INSTALLED)
        cls.eventually_gone()

    @classmethod
    def remove(cls, *what):
        """The starter's Job is gone long before."""
        cls.kubectl("delete", "--ignore-not-found", *what)

    @classmethod
    def eventually_gone(cls):
        cls.fleet.wait("nothing of Flamefleet is left", lambda: not [
            name for name in names_of_all_objects(cls.kubectl) if "flamefleet" in "/".join(name)])

    def helm(self, *argv):
        run(binaries.ensure_clients() / "helm", *argv, env=self.kubectl.environment)

    def check(self, install, remove):
        before = names_of_all_objects(self.kubectl)
        began = time.monotonic()
        install()
        self.eventually("the store has its Service", lambda: self.kubectl(
            "get", "service", "-n", NAMESPACE, "flamefleet-store-default", "--ignore-not-found"))
        store = self.fleet.store()
        found = self.eventually("the hottest function of `annotated` is in the store", lambda: self.answer(store))
        say(f"   {self._testMethodName}: the first flame graph data after {time.monotonic() - began:.0f} s")
        self.assertGreater(found.total, 0)
        remove()
        self.eventually_gone()
        self.assertEqual(names_of_all_objects(self.kubectl), before)

    @staticmethod
    def answer(store):
        """What the store has of the workload, which is nothing until the store itself answers."""
        try:
            top = store.top('process_cpu:cpu{service_name="annotated"}', "now-5m")
        except OSError:
            return None
        return top if "burn_seventy" in top.share else None

    def test_kustomize(self):
        self.check(lambda: self.kubectl("apply", "-k", INSTALLED), lambda: self.remove("-k", INSTALLED))

    def test_one_file_of_manifests(self):
        file = self.dist / "install.yaml"
        self.check(lambda: self.kubectl("apply", "-f", file), lambda: self.remove("-f", file))

    def test_helm(self):
        def remove():
            self.helm("uninstall", "flamefleet", "-n", NAMESPACE, "--wait")
            self.kubectl("delete", "crd", *KINDS)
            self.kubectl("delete", "namespace", NAMESPACE)

        self.check(lambda: self.helm("install", "flamefleet", self.dist / f"flamefleet-{VERSION}.tgz", "-n", NAMESPACE,
                                     "--create-namespace"), remove)
