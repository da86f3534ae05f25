# SPDX-License-Identifier: Apache-2.0
"""What GitOps tools make of our kinds on a real kube-apiserver: kstatus (Flux), Argo CD's script and `kubectl wait` agree in each
state; and the sample repository renders to what it says."""

import json
import subprocess
import tempfile
import unittest

import yaml

from apiserver import CONFIG, ROOT, clients, installed, operator

EXAMPLE = ROOT / "examples" / "gitops"
SPECS = {
    "AgentPool": {},
    "ProfilingBackend": {"type": "Pyroscope", "endpoint": "http://pyroscope:4040"},
    "ProfilingTarget": {"selector": {}, "profiles": [{"type": "cpu"}]},
}
# name -> generation that the operator has seen, or None when there is no status; conditions; kstatus; Argo CD; whether
# `kubectl wait` finds it Ready, and Stalled
STATES = {
    "new": (None, {}, "InProgress", "Progressing", False, False),
    "starting": (1, {"Ready": "False", "Reconciling": "True"}, "InProgress", "Progressing", False, False),
    "unknown": (1, {"Ready": "Unknown"}, "InProgress", "Progressing", False, False),
    "partly": (1, {"Ready": "False", "Delivering": "True"}, "InProgress", "Progressing", False, False),
    "ready": (1, {"Accepted": "True", "Ready": "True"}, "Current", "Healthy", True, False),
    "changed": (0, {"Accepted": "True", "Ready": "True"}, "InProgress", "Progressing", False, False),
    "failed": (1, {"Accepted": "False", "Ready": "False", "Stalled": "True"}, "Failed", "Degraded", False, True),
    "terminating": (1, {"Accepted": "True", "Ready": "True"}, "Terminating", "Progressing", False, False),
}


def item(kind, state):
    seen, conditions, *_ = STATES[state]
    made = {"apiVersion": "flamefleet.dev/v1alpha1", "kind": kind, "metadata": {"name": f"health-{state}"}, "spec": SPECS[kind]}
    if kind == "ProfilingTarget":
        made["metadata"]["namespace"] = "shop"
    if state == "terminating":
        made["metadata"]["finalizers"] = ["example.org/holds-it"]
    if seen is not None:
        made["status"] = {"observedGeneration": seen, "conditions": [
            {"type": name, "status": status, "reason": "Because", "message": f"why {name} is {status}", "observedGeneration": seen,
             "lastTransitionTime": "2026-01-01T00:00:00Z"} for name, status in conditions.items()]}
    return made


class Health(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = installed()
        items = [item(kind, state) for kind in SPECS for state in STATES]
        cls.server.create([{**made, "status": {}} for made in items])
        cls.apply_status([made for made in items if "status" in made])
        cls.items = items
        cls.by_kubectl(("delete", "--wait=false"), "terminating")

    @classmethod
    def apply_status(cls, items):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        cls.server.kubectl("apply", "--server-side", "--subresource=status", "--field-manager=test", "-f", "-", stdin=text, check=True)

    @classmethod
    def by_kubectl(cls, command, *states):
        """Runs kubectl with the objects in these states; the answer's lines."""
        text = json.dumps({"apiVersion": "v1", "kind": "List",
                           "items": [made for made in cls.items if made["metadata"]["name"].removeprefix("health-") in states]})
        return cls.server.kubectl(*command, "-f", "-", stdin=text).output.splitlines()

    def judged(self, items):
        """(kind, state) -> kstatus, Argo CD"""
        answer = self.server.run(clients() / "health", CONFIG / "argocd" / "health.lua", check=True,
                                 stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return {(kind, name.removeprefix("health-")): tuple(verdicts)
                for kind, name, *verdicts in (line.split() for line in answer.stdout.splitlines())}

    def live(self):
        text = self.server.kubectl("get", "agentpools,profilingbackends,profilingtargets", "-A", "-o", "json", check=True).stdout
        return [made for made in json.loads(text)["items"] if made["metadata"]["name"].startswith("health-")]

    def test_kstatus_and_argo_agree_in_each_state_of_each_kind(self):
        want = {(kind, state): tuple(STATES[state][2:4]) for kind in SPECS for state in STATES}
        self.assertEqual(self.judged(self.live()), want)

    def test_kubectl_waits_for_what_they_call_healthy_and_failed(self):
        for condition, column in (("Ready", 4), ("Stalled", 5)):
            lines = self.by_kubectl(("wait", f"--for=condition={condition}", "--timeout=0"), *STATES)
            met = {tuple(line.split()[0].split("/")) for line in lines if line.endswith("condition met")}
            self.assertEqual(met, {(f"{kind.lower()}.flamefleet.dev", f"health-{state}")
                                   for kind in SPECS for state in STATES if STATES[state][column]}, lines)

    def test_paused_target_is_suspended(self):
        paused = item("ProfilingTarget", "partly")
        paused["metadata"]["generation"] = 1
        paused["status"]["conditions"][0]["reason"] = "Paused"
        self.assertEqual(self.judged([paused]), {("ProfilingTarget", "partly"): ("InProgress", "Suspended")})

    def test_backend_that_nobody_uses_yet_is_healthy(self):
        unused = item("ProfilingBackend", "unknown")
        unused["metadata"]["generation"] = 1
        unused["status"]["conditions"][0]["reason"] = "NotUsed"
        self.assertEqual(self.judged([unused]), {("ProfilingBackend", "unknown"): ("InProgress", "Healthy")})

    def test_component_gives_argo_the_script_for_each_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            config = "../" * len(folder.split("/")[1:]) + str(CONFIG.relative_to("/"))
            settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": {"url": "https://argo"}}
            for name, text in (("argocd-cm.yaml", settings),
                               ("kustomization.yaml", {"resources": ["argocd-cm.yaml"], "components": [f"{config}/argocd"]})):
                with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                    json.dump(text, file)
            data = yaml.safe_load(self.server.kubectl("kustomize", folder, check=True).stdout)["data"]
        script = (CONFIG / "argocd" / "health.lua").read_text()
        self.assertEqual(data, {"url": "https://argo", **{
            f"resource.customizations.health.flamefleet.dev_{kind}": script for kind in SPECS}})


class Example(unittest.TestCase):
    """The sample repository, rendered as its README says."""

    @classmethod
    def setUpClass(cls):
        cls.server = installed()

    @classmethod
    def kustomize(cls, folder):
        return cls.server.kubectl("kustomize", folder, check=True).stdout

    def render(self, *texts, code=0):
        """workload -> the profiles that are collected of its pods, and how"""
        answer = subprocess.run([operator(), "render", "--strict", "-f", "-", "-o", "json"], input="\n---\n".join(texts), text=True,
                                capture_output=True, check=False)
        self.assertEqual(answer.returncode, code, answer.stdout + answer.stderr)
        return {pod["name"]: {(one["profile"], one["mode"]) for one in pod["collected"]} for pod in json.loads(answer.stdout)["pods"]}

    def test_both_overlays_profile_what_the_teams_want(self):
        teams = [self.kustomize(folder) for folder in sorted((EXAMPLE / "teams").iterdir())]
        for overlay in ("staging", "production"):
            with self.subTest(overlay):
                self.assertEqual(self.render(self.kustomize(EXAMPLE / "fleet" / overlay), *teams), {
                    "checkout": {("cpu", "EBPF"), ("memory", "Pull")}, "payments": {("cpu", "EBPF")}})

    def test_render_shows_an_overlay_that_breaks_a_selector(self):
        shop = self.kustomize(EXAMPLE / "teams" / "shop")
        broken = shop.replace("      labels:\n        app: checkout\n", "      labels:\n        app: checkout-v2\n")
        self.assertNotEqual(shop, broken)
        self.assertEqual(self.render(self.kustomize(EXAMPLE / "fleet" / "production"), broken, code=1), {"checkout": set()})

    def test_objects_are_valid(self):
        for folder in ("fleet/staging", "fleet/production", "operator"):
            with self.subTest(folder):
                # The kinds are there already.
                answer = self.server.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--field-manager=x",
                                             "-f", "-", stdin=self.kustomize(EXAMPLE / folder))
                self.assertEqual(answer.returncode, 0, answer.output)

    def test_what_flux_and_argo_bring_is_there_and_what_flux_waits_for_is_in_it(self):
        flux = list(yaml.safe_load_all((EXAMPLE / "flux" / "production.yaml").read_text()))
        argo = list(yaml.safe_load_all((EXAMPLE / "argocd" / "production.yaml").read_text()))
        self.assertEqual([(one["metadata"]["name"], one["spec"]["path"]) for one in flux],
                         [(one["metadata"]["name"], one["spec"]["source"]["path"]) for one in argo])
        seen = set()
        for one in flux:
            self.assertLessEqual({other["name"] for other in one["spec"].get("dependsOn", [])}, seen)
            seen.add(one["metadata"]["name"])
            made = {(item["apiVersion"], item["kind"], item["metadata"]["name"], item["metadata"].get("namespace"))
                    for item in yaml.safe_load_all(self.kustomize(ROOT / one["spec"]["path"]))}
            for check in one["spec"].get("healthChecks", []):
                self.assertIn((check["apiVersion"], check["kind"], check["name"], check.get("namespace")), made)

    def test_kinds_are_never_pruned(self):
        crds = [item for item in yaml.safe_load_all(self.kustomize(EXAMPLE / "operator")) if item["kind"] == "CustomResourceDefinition"]
        self.assertEqual(len(crds), 3)
        for crd in crds:
            self.assertEqual(crd["metadata"]["annotations"], {"kustomize.toolkit.fluxcd.io/prune": "disabled",
                                                              "argocd.argoproj.io/sync-options": "Prune=false"})
