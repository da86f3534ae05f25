# SPDX-License-Identifier: Apache-2.0
"""Each way to install leads to flame graph data, of a workload that had opted in before or of one of docs/start.md, and each
way to remove it leaves what was there before.

The time from the first command to the first data is printed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from clusterlib import binaries, images, paths
from clusterlib.fleet import INSTALLED, NAMESPACE, TARGET, WORKLOADS
from clusterlib.kubectl import names_of_all_objects
from clusterlib.progress import say, step
from clusterlib.shell import run
from scenarios.support import Scenario

sys.path.insert(0, str(paths.REPOSITORY / "tests" / "docs"))
import commands  # noqa: E402

REPOSITORY, _, TAG = images.FLAMEFLEET_IMAGE.partition(":")
KINDS = ["agentpools.flamefleet.dev", "profilingbackends.flamefleet.dev", "profilingtargets.flamefleet.dev"]
VERSION = run(paths.REPOSITORY / "tools" / "version").strip()
START = paths.REPOSITORY / "docs" / "start.md"
# What the page takes from registries, and the image that a node has under that name here.
PAGE_IMAGES = (f"registry.example/flamefleet:{VERSION}", "docker.io/library/busybox:1.37")


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
            for name in (f"{REPOSITORY}:{VERSION}", *PAGE_IMAGES):  # each has a shell
                node.ctr("images", "tag", "--force", images.FLAMEFLEET_IMAGE, name)
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
        self.wait_for_data(began, "annotated", "burn_seventy")
        remove()
        self.eventually_gone()
        self.assertEqual(names_of_all_objects(self.kubectl), before)

    def wait_for_data(self, began, service, function=""):
        self.eventually("the store has its Service", lambda: self.kubectl(
            "get", "service", "-n", NAMESPACE, "flamefleet-store-default", "--ignore-not-found"))
        store = self.fleet.store()
        self.eventually(f"the profile of `{service}` is in the store", lambda: self.answer(store, service, function))
        say(f"   {self._testMethodName}: the first flame graph data after {time.monotonic() - began:.0f} s")

    @staticmethod
    def answer(store, service, function):
        """What the store has of the workload, which is nothing until the store itself answers."""
        try:
            top = store.top(f'process_cpu:cpu{{service_name="{service}"}}', "now-5m")
        except OSError:
            return None
        return top.total > 0 and (not function or function in top.share)

    def test_docs_start_as_written(self):
        """With kustomize, in a cluster that has no namespace `shop` yet."""
        def restore():
            self.kubectl("delete", "namespace", "shop", "--ignore-not-found")
            self.kubectl("apply", "-f", WORKLOADS)
            self.kubectl("wait", "-n", "shop", "--for=condition=Available", "deployment", "--all", "--timeout=120s")

        self.addCleanup(restore)
        self.kubectl("delete", "namespace", "shop")
        before = names_of_all_objects(self.kubectl)
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="flamefleet-start-")))
        for name in ("config", "crds"):
            shutil.copytree(paths.REPOSITORY / name, folder / name)
        path = f"{self.kubectl.binary.parent}:{images.BUILT_HERE}:{os.environ['PATH']}"
        environment = {**self.kubectl.environment, "PATH": path, "PPROF_TMPDIR": str(folder)}
        began = waited = None
        for command in (one for block in commands.blocks(START.read_text()) for one in commands.split(block)):
            if commands.reason_not_to_run(command) in (commands.IMAGE, commands.OPENSHIFT):
                continue
            began = began or time.monotonic()
            if not waited and command.startswith("curl"):
                self.wait_for_data(began, "checkout")
                waited = True
            with step(f"$ {command.splitlines()[0]}"):
                self.run_as_written(command, folder, environment)
        self.assertTrue(waited)
        # A shell that is a container's first process takes no notice of SIGTERM.
        self.kubectl("scale", "deployment", "--all", "-n", "shop", "--replicas=0")
        self.kubectl("delete", "pods", "--all", "-n", "shop", "--grace-period=1")
        self.kubectl("delete", "namespace", "shop")
        self.eventually_gone()
        self.assertEqual(names_of_all_objects(self.kubectl), before)

    def run_as_written(self, command, folder, environment):
        if commands.reason_not_to_run(command) == commands.FOREVER:
            process = subprocess.Popen(["bash", "-c", "exec " + command], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
            for end in (process.stdout.close, process.wait, process.terminate):
                self.addCleanup(end)
            self.assertIn("Forwarding from", process.stdout.readline())
            return
        done = subprocess.run(["bash", "-ec", command], cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, f"$ {command}\n{done.stdout}")

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
