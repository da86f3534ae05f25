# SPDX-License-Identifier: Apache-2.0
"""crds/ and config/ against a real kube-apiserver: it takes them in one `kubectl apply -k`, it takes the objects of
accepted.yaml, and refuses those of refused.yaml with a message that says which field is wrong."""

import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from apiserver import CONFIG, ROOT, installed, prometheus_operator

HERE = pathlib.Path(__file__).resolve().parent


def documents(name):
    """(comment, text) of each document of a file, without the file's own header."""
    for text in (HERE / name).read_text().split("\n---\n")[1:]:
        yield text.splitlines()[0].lstrip("# "), text


class Config(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = installed()
        cls.kubectl = cls.server.kubectl

    def crds(self):
        return [crd for crd in json.loads(self.kubectl("get", "crd", "-o", "json").stdout)["items"]
                if crd["spec"]["group"] == "flamefleet.dev"]

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
            self.assertNotIn('"default":', json.dumps(field["items"]), f"{path}[]: tools that replace lists see a change")
            self.check_field(f"{path}[]", field["items"], named=False)
        if "additionalProperties" in field:
            self.assertIn("maxProperties", field, path)
            self.check_field(f"{path}{{}}", field["additionalProperties"], named=False)
        for name, child in field.get("properties", {}).items():
            self.check_field(f"{path}.{name}", child)

    def test_a_second_apply_changes_nothing(self):
        # Others create the same objects.
        self.addCleanup(self.kubectl, "delete", "-f", CONFIG / "samples", "-f", CONFIG / "starter" / "agentpool.yaml")
        for what in (("-k", CONFIG / "default"), ("-f", CONFIG / "samples"), ("-f", CONFIG / "starter" / "agentpool.yaml")):
            self.kubectl("apply", *what, check=True)
            result = self.kubectl("apply", *what, check=True)
            self.assertEqual([line for line in result.stdout.splitlines() if not line.endswith(" unchanged")], [])

    def test_starter_objects_and_samples_are_valid(self):
        for path in [*CONFIG.glob("starter/agentpool.yaml"), *CONFIG.glob("starter/profilingbackend.yaml"), *CONFIG.glob("samples/*.yaml")]:
            with self.subTest(path.name):
                result = self.kubectl("create", "--dry-run=server", "-f", str(path))
                self.assertEqual(result.returncode, 0, result.output)

    def test_components_are_valid(self):
        folder = prometheus_operator() / "example" / "prometheus-operator-crd"
        for kind in ("servicemonitors", "podmonitors", "prometheusrules"):
            self.kubectl("apply", "--server-side", "-f", folder / f"monitoring.coreos.com_{kind}.yaml", check=True)
        self.server.wait_for_kinds()
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.relpath(CONFIG, os.path.realpath(folder))
            components = [f"{config}/{name}" for name in ("high-availability", "namespaced", "network-policy", "prometheus")]
            overlay = {"resources": [f"{config}/default"], "components": components}
            pathlib.Path(folder, "kustomization.yaml").write_text(json.dumps(overlay))
            result = self.kubectl("apply", "--dry-run=server", "-k", folder)
        self.assertEqual(result.returncode, 0, result.output)
        for applied in ("deployment.apps/flamefleet-operator configured", "poddisruptionbudget.policy/flamefleet-operator created",
                        "servicemonitor.monitoring.coreos.com/flamefleet-operator created"):
            self.assertIn(applied, result.output)

    def kustomize(self, overlay):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.relpath(CONFIG, os.path.realpath(folder))
            shutil.copy(CONFIG / "samples" / "watched_namespace.yaml", folder)
            pathlib.Path(folder, "kustomization.yaml").write_text(overlay.replace("https://.../config", config))
            return self.kubectl("kustomize", folder)

    def test_another_namespace_is_one_line_of_a_kustomization(self):
        components = [f"https://.../config/{name}" for name in ("high-availability", "namespaced", "network-policy", "prometheus")]
        result = self.kustomize(json.dumps({"resources": ["https://.../config/default"], "components": components, "namespace": "profiling"}))
        self.assertEqual(result.returncode, 0, result.output)
        self.assertEqual([line for line in result.stdout.splitlines() if "flamefleet-system" in line], [])

    def test_kustomizations_that_pages_and_comments_show_render(self):
        shown = {path: re.sub("^#   ", "", "\n".join(re.findall("^#   .*", path.read_text(), re.MULTILINE)), flags=re.MULTILINE)
                 for path in CONFIG.glob("*/kustomization.yaml")}
        for page in (ROOT / "docs").glob("*.md"):
            for number, block in enumerate(re.findall("^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)):
                shown[page, number] = block
        ours = {where: text for where, text in shown.items() if text.startswith("resources: [https://.../config")}
        self.assertGreaterEqual(len(ours), 6)
        for where, text in ours.items():
            with self.subTest(where):
                result = self.kustomize(text)
                self.assertEqual(result.returncode, 0, result.output)
                for item in re.findall("value: (--.*)}", text):
                    self.assertIn(f"- {item}\n", result.stdout)

    def test_another_manager_applies_twice_and_changes_nothing(self):
        def applied(item):
            """The object but for what controllers write into its status meanwhile."""
            metadata = item["metadata"]
            fields = [entry for entry in metadata.pop("managedFields") if entry["manager"] == "gitops"]
            self.assertEqual(len(fields), 1, metadata["name"])
            del metadata["resourceVersion"]
            item.pop("status", None)
            metadata.get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
            return item, fields

        apply = ("apply", "--server-side", "--field-manager=gitops", "--force-conflicts", "--show-managed-fields", "-k",
                 CONFIG / "operator", "-o", "json")
        first, second = ([applied(item) for item in json.loads(self.kubectl(*apply, check=True).stdout)["items"]] for _ in range(2))
        self.assertGreater(len(first), 10)
        self.assertEqual(first, second)  # also the time at which the manager last changed anything

    def test_objects_that_the_operator_makes_are_valid(self):
        for path in sorted(ROOT.glob("tests/golden/operator/*.json")):
            with self.subTest(path.name):
                result = self.kubectl("create", "--dry-run=server", "-f", str(path))
                self.assertEqual(result.returncode, 0, result.output)

    def test_accepted(self):
        for comment, text in documents("accepted.yaml"):
            with self.subTest(comment):
                result = self.kubectl("create", "--dry-run=server", "-f", "-", stdin=text)
                self.assertEqual(result.returncode, 0, result.output)

    def test_refused(self):
        for comment, text in documents("refused.yaml"):
            with self.subTest(comment):
                result = self.kubectl("create", "--dry-run=server", "-f", "-", stdin=text)
                self.assertNotEqual(result.returncode, 0, result.output)
                self.assertIn(comment.removeprefix("want: "), result.output)
