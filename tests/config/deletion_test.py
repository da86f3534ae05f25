#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `kubectl apply -k config/default` brought is gone after it is deleted, whatever goes first.

On a real kube-apiserver with the controllers that collect garbage and empty namespaces. The operator runs all the time,
as it does until its pod is gone. There are no nodes."""

import subprocess
import sys
import unittest

from apiserver import CONFIG, DEADLINE_SECONDS, NAMESPACE, ROOT, ApiServer, operator, wait_until
from clusterlib.kubectl import names_of_all_objects

DEFAULT = CONFIG / "default"
# What the operator makes of the objects that a cluster begins with.
MADE = ["daemonset/flamefleet-agent-default", "deployment/flamefleet-store-default", "service/flamefleet-store-default"]


class Deletion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ApiServer("--controllers")
        cls.addClassCleanup(cls.server.stop)
        cls.kubectl = cls.server.kubectl
        wait_until("the controllers run", lambda: cls.kubectl("get", "serviceaccount", "default").returncode == 0)

    def everything(self):
        return names_of_all_objects(lambda *arguments: self.kubectl(*arguments, check=True).stdout)

    def start_operator(self):
        command = [operator(), "run", f"--kubeconfig={self.server.kubeconfig}", f"--namespace={NAMESPACE}",
                   "--image=example.org/x:1", "--listen=127.0.0.1:0", "--agents-listen=127.0.0.1:0"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def install(self):
        before = self.everything()
        self.kubectl("apply", "-k", str(DEFAULT), check=True)
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all", check=True)
        # What the starter's pod does, which has no node here.
        for name in ("agentpool.yaml", "profilingbackend.yaml"):
            self.kubectl("create", "-f", str(ROOT / "config" / "starter" / name), check=True)
        wait_until("the operator has made its objects",
                   lambda: self.kubectl("get", "-n", NAMESPACE, *MADE).returncode == 0)
        return before

    def delete(self, *arguments):
        self.kubectl("delete", "--ignore-not-found", f"--timeout={DEADLINE_SECONDS}s", *arguments, check=True)

    def check_deleted(self, *first):
        """Installs, deletes each of `first` and then the whole: what there was before is left, and nothing else."""
        process = self.start_operator()
        before = self.install()
        self.assertGreater(self.everything(), before)
        for arguments in first:
            if arguments == "operator":
                process.kill()
                self.delete("deployment", "flamefleet-operator", "-n", NAMESPACE)
            else:
                self.delete(*arguments)
        self.delete("-k", str(DEFAULT))
        try:
            wait_until("all of it is gone, and nothing else", lambda: self.everything() == before)
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
