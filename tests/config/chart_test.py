#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make dist` makes: the same bytes each time, a chart that makes what config/ makes, refuses what is wrong, and installs,
upgrades and goes on a real kube-apiserver."""

import json
import pathlib
import platform
import subprocess
import sys
import tarfile
import tempfile
import unittest

import yaml

from apiserver import CONFIG, NAMESPACE, ROOT, ApiServer, clients, operator, wait_until

VERSION = subprocess.run([ROOT / "tools" / "version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
IMAGE = "registry.example/flamefleet"
CRD = "agentpools.flamefleet.dev"


def by_identity(items):
    return {(item["apiVersion"], item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
            for item in items if item}


class Chart(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = ApiServer()
        cls.addClassCleanup(cls.server.stop)
        folder = tempfile.TemporaryDirectory(prefix="flamefleet-dist-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.dist = cls.make_dist("dist")
        cls.package = cls.dist / f"flamefleet-{VERSION}.tgz"

    @classmethod
    def make_dist(cls, name):
        cls.server.run("env", "SOURCE_DATE_EPOCH=1700000000", ROOT / "tools" / "dist", "--image", IMAGE, "--kubectl", cls.server.kubectl_path,
                       "--plugin", pathlib.Path(operator()).with_name("kubectl-flamefleet"), "--out", cls.folder / name, check=True)
        return cls.folder / name

    def helm(self, *arguments, check=True):
        return self.server.run(clients() / "helm", *arguments, check=check).stdout

    def template(self, *settings):
        arguments = [argument for setting in settings for argument in ("--set", setting)]
        text = self.helm("template", "flamefleet", self.package, "--namespace", NAMESPACE, "--include-crds", *arguments)
        return by_identity(yaml.safe_load_all(text))

    def kustomize(self, *components):
        """config/default with components and the image of the release, with the starter's objects in place of its Job."""
        overlay = self.folder / "-".join(["overlay", *components])
        overlay.mkdir(exist_ok=True)
        config = pathlib.Path("../" * len(overlay.parts[1:])) / CONFIG.relative_to("/")
        (overlay / "kustomization.yaml").write_text(yaml.safe_dump(
            {"resources": [f"{config}/default"], "components": [f"{config}/{name}" for name in components],
             "images": [{"name": "flamefleet", "newName": IMAGE, "newTag": VERSION}]}))
        rendered = list(yaml.safe_load_all(self.server.kubectl("kustomize", overlay, check=True).stdout))
        starter = next(item for item in rendered if item["kind"] == "ConfigMap")
        kept = [item for item in rendered
                if item["metadata"]["name"] != "flamefleet-starter" and item["kind"] != "Namespace"]
        return by_identity(kept + [yaml.safe_load(text) for text in starter["data"].values()])

    def test_two_runs_make_the_same_bytes(self):
        again = self.make_dist("again")
        for path in sorted(self.dist.iterdir()):
            self.assertEqual(path.read_bytes(), (again / path.name).read_bytes(), path.name)
        self.server.run("sh", "-c", f"cd {self.dist} && sha256sum --check --strict SHA256SUMS", check=True)

    def test_the_plugin_is_packed_with_what_completes_its_words(self):
        file = self.dist / f"kubectl-flamefleet-{VERSION}-linux-{platform.machine()}.tgz"
        with tarfile.open(file) as packed:
            self.assertEqual({member.name: oct(member.mode) for member in packed}, {
                f"kubectl-flamefleet/{name}": "0o755" for name in ("kubectl-flamefleet", "kubectl_complete-flamefleet")})
        self.server.run("tar", "-xzf", file, "-C", self.folder, check=True)
        answer = self.server.run(self.folder / "kubectl-flamefleet" / "kubectl-flamefleet", "version", check=True)
        self.assertEqual(answer.stdout.split(), ["kubectl-flamefleet", VERSION])

    def test_an_image_with_a_tag_is_refused(self):
        for image in ("flamefleet:1", "registry.example:5000/flamefleet:1", "flamefleet@sha256:0", ""):
            answer = self.server.run(ROOT / "tools" / "dist", "--image", image, "--out", self.folder / "none")
            self.assertNotEqual(answer.returncode, 0)
            self.assertIn(f"--image {image}: the name alone", answer.output)
        self.assertFalse((self.folder / "none").exists())

    def test_one_file_makes_what_config_makes(self):
        installed = by_identity(yaml.safe_load_all((self.dist / "install.yaml").read_text()))
        expected = self.kustomize()
        self.assertEqual({key: installed[key] for key in expected if key in installed},
                         {key: item for key, item in expected.items() if key[1] not in ("AgentPool", "ProfilingBackend")})

    def test_chart_makes_what_config_makes(self):
        for settings, components in (((), ()),
                                     (("operator.replicas=2",), ("high-availability",)),
                                     (("prometheus.enabled=true",), ("prometheus",)),
                                     (("networkPolicy.enabled=true",), ("network-policy",)),
                                     ((f"watchNamespaces[0]={NAMESPACE}",), ("namespaced",))):
            with self.subTest(settings=settings):
                self.assertEqual(self.template(*settings), self.kustomize(*components))

    def test_values_reach_the_objects(self):
        objects = self.template(
            "image.digest=sha256:" + "0" * 64, "image.pullPolicy=Always", "image.pullSecrets[0].name=key",
            "operator.logLevel=debug", "operator.resources.limits.memory=1Gi", "operator.podAnnotations.team=a",
            "operator.nodeSelector.disk=ssd", "operator.priorityClassName=high", "operator.tolerations[0].operator=Exists",
            "prometheus.enabled=true", "prometheus.labels.release=main",
            "agentPool.spec.sampling.frequency=97", "backend.spec.type=Pyroscope", "backend.spec.endpoint=http://a:4040")
        deployment = objects["apps/v1", "Deployment", NAMESPACE, "flamefleet-operator"]["spec"]["template"]
        container = deployment["spec"]["containers"][0]
        self.assertEqual(container["image"], f"{IMAGE}@sha256:" + "0" * 64)
        self.assertEqual(container["imagePullPolicy"], "Always")
        self.assertEqual(container["args"][-1], "--log-level=debug")
        self.assertEqual(container["resources"]["limits"], {"memory": "1Gi"})
        self.assertEqual(deployment["spec"]["imagePullSecrets"], [{"name": "key"}])
        self.assertEqual(deployment["spec"]["nodeSelector"], {"disk": "ssd"})
        self.assertEqual(deployment["spec"]["priorityClassName"], "high")
        self.assertEqual(deployment["spec"]["tolerations"], [{"operator": "Exists"}])
        self.assertEqual(deployment["metadata"]["annotations"]["team"], "a")
        self.assertEqual(objects["flamefleet.dev/v1alpha1", "AgentPool", "", "default"]["spec"], {"sampling": {"frequency": 97}})
        self.assertEqual(objects["flamefleet.dev/v1alpha1", "ProfilingBackend", "", "default"]["spec"],
                         {"default": True, "type": "Pyroscope", "endpoint": "http://a:4040"})
        for key, item in objects.items():
            if key[0].startswith("monitoring.coreos.com/"):
                self.assertEqual(item["metadata"]["labels"]["release"], "main", key)

    def test_watched_namespaces_are_bound_one_by_one_and_nothing_in_the_cluster(self):
        objects = self.template("watchNamespaces[0]=shop", "watchNamespaces[1]=payments")
        bindings = {key[2]: item for key, item in objects.items() if key[1] == "RoleBinding" and key[3] == "flamefleet-operator-pods"}
        self.assertEqual(set(bindings), {"shop", "payments", NAMESPACE})
        for item in bindings.values():
            self.assertEqual(item["subjects"][0]["namespace"], NAMESPACE)
        arguments = objects["apps/v1", "Deployment", NAMESPACE, "flamefleet-operator"]["spec"]["template"]["spec"]["containers"][0]["args"]
        self.assertEqual([argument for argument in arguments if "namespace" in argument],
                         [f"--watch-namespace={name}" for name in ("shop", "payments", "$(FLAMEFLEET_NAMESPACE)")])
        self.assertNotIn("flamefleet-operator-pods", [key[3] for key in objects if key[1] == "ClusterRoleBinding"])

    def test_a_backend_may_say_that_it_is_not_the_default(self):
        objects = self.template("backend.spec.type=Pyroscope", "backend.spec.endpoint=http://a:4040", "backend.spec.default=false")
        self.assertIs(objects["flamefleet.dev/v1alpha1", "ProfilingBackend", "", "default"]["spec"]["default"], False)

    def test_names_of_digits_are_names(self):
        text = self.helm("template", "flamefleet", self.package, "--namespace", "2026", "--set-string", "watchNamespaces[0]=7e1")
        namespaces = {item["metadata"].get("namespace") for item in yaml.safe_load_all(text) if item}
        self.assertEqual(namespaces, {None, "2026", "7e1", "default"})

    def test_wrong_values_are_refused_with_their_field(self):
        for setting, field in (("operator.replica=2", "replica"),
                               ("operator.replicas=0", "/operator/replicas"),
                               ("operator.logLevel=loud", "/operator/logLevel"),
                               ("operator.resources.limits.memory=lots", "/operator/resources/limits/memory"),
                               ("image.tag=a/b", "/image/tag"),
                               ("image.repository=registry.example:5000/flamefleet:1", "/image/repository"),
                               ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
                               ("images.tag=x", "images"),
                               ("agentPool.spec.samplng.frequency=97", "samplng"),
                               ("agentPool.spec.sampling.frequency=0", "/agentPool/spec/sampling/frequency"),
                               ("agentPool.spec.scope=Everything", "/agentPool/spec/scope"),
                               ("backend.spec.type=Elsewhere", "/backend/spec/type"),
                               ("backend.spec.endpoint=http://a", "type"),
                               ("prometheus.enabled=maybe", "/prometheus/enabled"),
                               ("networkPolicy=true", "/networkPolicy"),
                               ("watchNamespaces[0]=Shop", "/watchNamespaces/0"),
                               ("watchNamespaces=shop", "/watchNamespaces")):
            with self.subTest(setting):
                arguments = ["template", "flamefleet", self.package, "--set", setting]
                answer = self.server.run(clients() / "helm", *arguments)
                self.assertNotEqual(answer.returncode, 0, answer.output)
                self.assertIn("don't meet the specifications of the schema", answer.output)
                self.assertIn(field, answer.output)

    def test_lint_finds_no_fault(self):
        self.helm("lint", "--strict", self.package)

    def test_life_of_a_release(self):
        """Install, upgrade with the kinds of another version, uninstall."""
        kubectl = self.server.kubectl
        install = [self.package, "--namespace", NAMESPACE]
        self.helm("install", "flamefleet", *install, "--create-namespace")
        self.server.wait_for_kinds()
        objects = [item for key, item in self.template().items() if key[1] != "CustomResourceDefinition"]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        kubectl("get", "-f", "-", stdin=text, check=True)

        # The kinds of an older version lack a field. Helm leaves them as they are; what the notes say brings it.
        kubectl("patch", "crd", CRD, "--type=json", "--patch", json.dumps(
            [{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/sampling"}]), check=True)
        wait_until("the server serves the older kinds", lambda: not self.knows_sampling())
        upgrade = ["upgrade", "flamefleet", *install, "--set"]
        self.helm(*upgrade, "agentPool.spec.sampling.frequency=97")  # succeeds, and the API server drops what it does not know
        self.assertEqual(self.frequency(), "")
        notes = self.helm("get", "notes", "flamefleet", "--namespace", NAMESPACE)
        command = next(line.strip() for line in notes.splitlines() if "helm show crds" in line)
        self.assertEqual(command, "helm show crds CHART | kubectl apply --server-side --force-conflicts -f -")
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=self.helm("show", "crds", self.package), check=True)
        wait_until("the server serves the newer kinds", self.knows_sampling)
        self.helm(*upgrade, "agentPool.spec.sampling.frequency=98")
        self.assertEqual(self.frequency(), "98")

        # Uninstalling takes what the chart made, and leaves the kinds with the objects of others.
        kubectl("apply", "-f", "-", check=True, stdin=json.dumps(
            {"apiVersion": "flamefleet.dev/v1alpha1", "kind": "AgentPool", "metadata": {"name": "other"}, "spec": {}}))
        self.helm("uninstall", "flamefleet", "--namespace", NAMESPACE)
        left = kubectl("get", "-f", "-", "--ignore-not-found", "-o", "name", stdin=text, check=True).stdout
        self.assertEqual(left, "")
        self.assertEqual(kubectl("get", "agentpools", "-o", "name", check=True).stdout.split(), ["agentpool.flamefleet.dev/other"])

    def knows_sampling(self):
        pool = {"apiVersion": "flamefleet.dev/v1alpha1", "kind": "AgentPool", "metadata": {"name": "asks"},
                "spec": {"sampling": {"frequency": 1}}}
        answer = self.server.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=json.dumps(pool))
        self.assertTrue(answer.returncode == 0 or "unknown field" in answer.output, answer.output)
        return answer.returncode == 0

    def frequency(self):
        return self.server.kubectl("get", "agentpool", "default", "-o", "jsonpath={.spec.sampling.frequency}", check=True).stdout


if __name__ == "__main__":
    sys.exit(unittest.main())
