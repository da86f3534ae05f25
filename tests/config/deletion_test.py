#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `kubectl apply -k config/default` brought is gone after it is deleted, whatever goes first.

On a real kube-apiserver with the controllers that collect garbage and empty namespaces. The operator runs all the time,
as it does until its pod is gone. There are no nodes."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OPERATOR = os.environ.get("FF_OPERATOR_BINARY", ROOT / "build/release/bin/flamefleet-operator")
NAMESPACE = "flamefleet-system"
DEFAULT = ROOT / "config" / "default"
DEADLINE_SECONDS = 120
# What the operator makes of the objects that a cluster begins with.
MADE = ["daemonset/flamefleet-agent-default", "deployment/flamefleet-store-default", "service/flamefleet-store-default"]
# Events go by themselves an hour after the last one; the others are no objects of their own.
NOT_COUNTED = {"events", "events.events.k8s.io", "componentstatuses", "endpoints"}


class Deletion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="flamefleet-deletion-")
        command = [ROOT / "e2e" / "cluster", "apiserver", "--dir", f"{cls.folder.name}/api", "--controllers",
                   "--stop-on-eof"]
        cls.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.kubeconfig = cls.server.stdout.readline().strip()
        assert cls.kubeconfig, "the API server did not start"
        cls.wait_until("the controllers run", lambda: cls.kubectl("get", "serviceaccount", "default").returncode == 0)

    @classmethod
    def tearDownClass(cls):
        cls.server.stdin.close()
        cls.server.stdout.close()
        cls.server.wait(timeout=90)
        cls.folder.cleanup()

    @classmethod
    def kubectl(cls, *arguments, check=False):
        environment = {**os.environ, "KUBECONFIG": cls.kubeconfig}
        result = subprocess.run([f"{cls.folder.name}/api/kubectl", *arguments], env=environment, text=True,
                                capture_output=True)
        if check and result.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {result.stderr}")
        return result

    @staticmethod
    def wait_until(what, condition):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {DEADLINE_SECONDS} s")
            time.sleep(0.2)

    def everything(self):
        """The names of all objects of all kinds."""
        kinds = self.kubectl("api-resources", "--verbs=list", "-o", "name", check=True).stdout.split()
        counted = ",".join(kind for kind in kinds if kind not in NOT_COUNTED)
        objects = self.kubectl("get", counted, "-A", "-o", "json", "--ignore-not-found", check=True).stdout
        return {(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"])
                for item in json.loads(objects)["items"]}

    def start_operator(self):
        command = [OPERATOR, "run", f"--kubeconfig={self.kubeconfig}", f"--namespace={NAMESPACE}",
                   "--image=example.org/x:1", "--listen=127.0.0.1:0", "--agents-listen=127.0.0.1:0"]
        operator = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.addCleanup(operator.wait)
        self.addCleanup(operator.kill)
        return operator

    def install(self):
        before = self.everything()
        self.kubectl("apply", "-k", str(DEFAULT), check=True)
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all", check=True)
        # What the starter's pod does, which has no node here.
        for name in ("agentpool.yaml", "profilingbackend.yaml"):
            self.kubectl("create", "-f", str(ROOT / "config" / "starter" / name), check=True)
        self.wait_until("the operator has made its objects",
                        lambda: self.kubectl("get", "-n", NAMESPACE, *MADE).returncode == 0)
        return before

    def delete(self, *arguments):
        self.kubectl("delete", "--ignore-not-found", f"--timeout={DEADLINE_SECONDS}s", *arguments, check=True)

    def check_deleted(self, *first):
        """Installs, deletes each of `first` and then the whole: what there was before is left, and nothing else."""
        operator = self.start_operator()
        before = self.install()
        self.assertGreater(self.everything(), before)
        for arguments in first:
            if arguments == "operator":
                operator.kill()
                self.delete("deployment", "flamefleet-operator", "-n", NAMESPACE)
            else:
                self.delete(*arguments)
        self.delete("-k", str(DEFAULT))
        try:
            self.wait_until("all of it is gone, and nothing else", lambda: self.everything() == before)
        except AssertionError as error:
            self.fail(f"{error}: {sorted(self.everything() ^ before)}")

    def test_all_at_once(self):
        self.check_deleted()

    def test_namespace_first(self):
        self.check_deleted(["namespace", NAMESPACE])

    def test_kinds_first(self):
        self.check_deleted(["-k", str(ROOT / "crds")])

    def test_operator_and_then_the_objects_of_users_first(self):
        self.check_deleted("operator", ["agentpools,profilingbackends", "--all"])


if __name__ == "__main__":
    sys.exit(unittest.main())
