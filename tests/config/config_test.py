#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crds/ and config/ against a real kube-apiserver: it takes them in one `kubectl apply -k`, it takes the objects of
accepted.yaml, and refuses those of refused.yaml with a message that says which field is wrong."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CONFIG = ROOT / "config"


def documents(name):
    """(comment, text) of each document of a file, without the file's own header."""
    for text in (HERE / name).read_text().split("\n---\n")[1:]:
        yield text.splitlines()[0].lstrip("# "), text


class Config(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="flamefleet-config-")
        command = [ROOT / "e2e" / "cluster", "apiserver", "--dir", f"{cls.folder.name}/api", "--stop-on-eof"]
        cls.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.kubeconfig = cls.server.stdout.readline().strip()
        assert cls.kubeconfig, "the API server did not start"
        cls.kubectl("apply", "-k", str(CONFIG / "default"), check=True)
        cls.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "--all", check=True)
        cls.kubectl("create", "namespace", "shop", check=True)

    @classmethod
    def tearDownClass(cls):
        cls.server.stdin.close()
        cls.server.stdout.close()
        cls.server.wait(timeout=90)
        cls.folder.cleanup()

    @classmethod
    def kubectl(cls, *arguments, stdin="", check=False):
        environment = {**os.environ, "KUBECONFIG": cls.kubeconfig}
        return subprocess.run([f"{cls.folder.name}/api/kubectl", *arguments], input=stdin, env=environment, check=check,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def crds(self):
        return json.loads(self.kubectl("get", "crd", "-o", "json").stdout)["items"]

    def test_server_finds_no_fault_with_the_schemas(self):
        for crd in self.crds():
            conditions = {condition["type"]: condition for condition in crd["status"]["conditions"]}
            self.assertNotIn("NonStructuralSchema", conditions)
            self.assertEqual(conditions["NamesAccepted"]["status"], "True")

    def test_client_side_apply_can_hold_each_crd(self):
        for path in (ROOT / "crds").glob("*.yaml"):
            self.assertLess(path.stat().st_size, 262144, path.name)  # kubectl keeps all of it in an annotation

    def test_every_field_is_described_and_bounded(self):
        for crd in self.crds():
            schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            for part in ("spec", "status"):
                self.check_field(f"{crd['spec']['names']['kind']}.{part}", schema["properties"][part])

    def check_field(self, path, field, named=True):
        if named:
            self.assertIn("description", field, path)
        kind = field.get("type")
        if kind == "string":
            self.assertTrue({"maxLength", "enum", "format"} & field.keys(), f"{path} has no bound")
        if kind == "array":
            self.assertIn("maxItems", field, path)
            self.check_field(f"{path}[]", field["items"], named=False)
        if "additionalProperties" in field:
            self.assertIn("maxProperties", field, path)
            self.check_field(f"{path}{{}}", field["additionalProperties"], named=False)
        for name, child in field.get("properties", {}).items():
            self.check_field(f"{path}.{name}", child)

    def test_a_second_apply_changes_nothing(self):
        result = self.kubectl("apply", "-k", str(CONFIG / "default"))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual([line for line in result.stdout.splitlines() if not line.endswith(" unchanged")], [])

    def test_starter_objects_and_samples_are_valid(self):
        for path in [*CONFIG.glob("starter/agentpool.yaml"), *CONFIG.glob("starter/profilingbackend.yaml"), *CONFIG.glob("samples/*.yaml"),
                     *CONFIG.glob("network-policy/policies.yaml")]:
            with self.subTest(path.name):
                result = self.kubectl("create", "--dry-run=server", "-f", str(path))
                self.assertEqual(result.returncode, 0, result.stdout)

    def test_objects_that_the_operator_makes_are_valid(self):
        for path in sorted(ROOT.glob("tests/golden/operator/*.json")):
            with self.subTest(path.name):
                result = self.kubectl("create", "--dry-run=server", "-f", str(path))
                self.assertEqual(result.returncode, 0, result.stdout)

    def test_agent_account_may_do_nothing(self):
        for verb in ("get", "list", "watch", "create", "patch", "delete"):
            for resource in ("pods", "nodes", "secrets", "agentpools", "profilingtargets", "daemonsets"):
                account = "system:serviceaccount:flamefleet-system:flamefleet-agent"
                result = self.kubectl("auth", "can-i", verb, resource, f"--as={account}", "--namespace=flamefleet-system", "--quiet")
                self.assertEqual(result.returncode, 1, f"{verb} {resource}")

    def test_accepted(self):
        for comment, text in documents("accepted.yaml"):
            with self.subTest(comment):
                result = self.kubectl("create", "--dry-run=server", "-f", "-", stdin=text)
                self.assertEqual(result.returncode, 0, result.stdout)

    def test_refused(self):
        for comment, text in documents("refused.yaml"):
            with self.subTest(comment):
                result = self.kubectl("create", "--dry-run=server", "-f", "-", stdin=text)
                self.assertNotEqual(result.returncode, 0, result.stdout)
                self.assertIn(comment.removeprefix("want: "), result.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
