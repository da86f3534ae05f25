# SPDX-License-Identifier: Apache-2.0
"""What was asked for arrives with the right labels and numbers, and nothing else does."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from clusterlib import paths
from clusterlib.fleet import NAMESPACE
from clusterlib.network import has_ipv6
from clusterlib.node import IPV6_RUNTIME
from clusterlib.shell import run
from clusterlib.store import parse_top
from scenarios.support import FREQUENCY_HZ, Scenario

# Pods that are opted in by annotations alone, one for each way to say where the endpoint is. The container `endpoint`
# serves pprof.
PYROSCOPE = {"pyroscope.io/scrape": "true", "pyroscope.io/profile-cpu-enabled": "false",
             "pyroscope.io/profile-mem-enabled": "true"}
GRAFANA = {"profiles.grafana.com/memory.scrape": "true"}
ANNOTATED_PODS = {
    "port-undeclared": {**PYROSCOPE, "pyroscope.io/port": "6060"},
    "path-and-parameter": {**PYROSCOPE, "pyroscope.io/port": "6060",
                           "pyroscope.io/profile-mem-path": "/internal/memory",
                           "pyroscope.io/profile-mem-param-key": "open"},
    "https": {**PYROSCOPE, "pyroscope.io/port": "6443", "pyroscope.io/scheme": "https"},
    "port-name": {**GRAFANA, "profiles.grafana.com/memory.port_name": "pprof"},
    "grafana-path-https": {**GRAFANA, "profiles.grafana.com/memory.port": "6443",
                           "profiles.grafana.com/memory.scheme": "https",
                           "profiles.grafana.com/memory.path": "/debug/pprof/heap"},
    "sidecar": {**GRAFANA, "profiles.grafana.com/memory.port_name": "pprof"},
}
IPV6_POD = "ipv6"  # it has no other address
DECLARED = {"port-name", "sidecar", IPV6_POD}

# The shares' standard deviation is then below two points even if samples fell at random.
ENOUGH_MILLISECONDS = 1000 * 600 / FREQUENCY_HZ
TOLERANCE_POINTS = 5


class Profiles(Scenario):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.began = int(time.time())  # of all tests: samples that one waits for are there for the next

    def check_burn(self, app):
        """The profile of a burn workload has all labels, and the shares that the program was written for."""
        query = (f'process_cpu:cpu{{namespace="shop", pod="{self.pod_name(app)}", container="burn", '
                 f'service_name="{app}"}}')
        top = self.eventually(f"enough samples of {app} are in the store",
                              lambda: (top := self.store.top(query, self.began)).total >= ENOUGH_MILLISECONDS and top)
        self.assertAlmostEqual(top.share["burn_seventy"], 70, delta=TOLERANCE_POINTS)
        self.assertAlmostEqual(top.share["burn_thirty"], 30, delta=TOLERANCE_POINTS)

    def test_annotated_pod_is_profiled_by_ebpf(self):
        self.check_burn("annotated")

    def test_targeted_pod_is_profiled_by_ebpf_and_its_status_says_so(self):
        self.check_burn("targeted")
        self.eventually("the ProfilingTarget is ready",
                        lambda: self.fleet.condition("profilingtarget", "targeted", "shop"))
        pods = self.target("targeted")["status"]["pods"]
        self.assertEqual((pods["matched"], pods["profiled"], pods["failing"]), (1, 1, 0))
        shown = self.kubectl("get", "pt", "-n", "shop", "targeted", "--no-headers").split()
        self.assertIn("True", shown)

    def test_pod_that_nobody_asked_for_is_never_profiled(self):
        # The others have delivered by now, for as long as this pod has run.
        self.check_burn("annotated")
        self.assertEqual(self.cpu("private", since="now-1h").total, 0)

    def test_pprof_endpoint_is_pulled(self):
        labels = f'namespace="shop", pod="{self.pod_name("gopprof")}", service_name="gopprof"'
        for query, unit, function in ((f"process_cpu:cpu{{{labels}}}", "ms", "main.hashBlocks"),
                                      (f"memory:alloc_space{{{labels}}}", "B", "main.buildRows")):
            with self.subTest(query=query):
                top = self.eventually(f"{function} is in the profile",
                                      lambda: function in (top := self.store.top(query, "now-1h", unit=unit)).share
                                      and top)
                self.assertGreater(top.share[function], 50)

    def test_annotations_of_both_families_say_where_to_pull(self):
        self.make_namespace("annotations")
        self.kubectl.apply([annotated_pod(name, annotations) for name, annotations in ANNOTATED_PODS.items()])
        for name in ANNOTATED_PODS:
            with self.subTest(pod=name):
                self.check_pulled("annotations", name)

    def test_pod_with_an_ipv6_address_alone_is_pulled(self):
        if not has_ipv6():
            reason = "this machine has no IPv6 (net.ipv6.conf.all.disable_ipv6)"
            self.assertNotIn("CI", os.environ, reason)
            self.skipTest(reason)
        self.make_namespace("ipv6")
        self.kubectl.apply([{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass",
                             "metadata": {"name": IPV6_RUNTIME}, "handler": IPV6_RUNTIME}])
        self.addCleanup(self.kubectl, "delete", "runtimeclass", IPV6_RUNTIME)
        pod = annotated_pod(IPV6_POD, ANNOTATED_PODS["port-name"], namespace="ipv6")
        pod["spec"]["runtimeClassName"] = IPV6_RUNTIME
        self.kubectl.apply([pod])
        self.check_pulled("ipv6", IPV6_POD)
        status = self.kubectl.get("pod", "-n", "ipv6", IPV6_POD)["status"]
        self.assertIn(":", status["podIP"])
        self.assertEqual(status["podIPs"], [{"ip": status["podIP"]}])

    def make_namespace(self, name):
        self.kubectl("create", "namespace", name)
        self.addCleanup(self.kubectl, "delete", "namespace", name, "--wait=false")

    def check_pulled(self, namespace, pod):
        container = ', container="endpoint"' if pod in DECLARED else ""
        query = f'memory:alloc_space{{namespace="{namespace}", pod="{pod}"{container}}}'
        top = self.eventually(f"the memory profile of {pod} is in the store",
                              lambda: "main.buildRows" in (top := self.store.top(query, self.since, unit="B")).share
                              and top)
        self.assertGreater(top.share["main.buildRows"], 50)


def annotated_pod(name, annotations, namespace="annotations"):
    endpoint = {"name": "endpoint", "image": "flamefleet-gopprof:dev", "imagePullPolicy": "Never",
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "50m", "memory": "64Mi"}}}
    if name in DECLARED:
        endpoint["ports"] = [{"name": "pprof", "containerPort": 6060}]
    containers = [endpoint]
    if name == "sidecar":
        containers.insert(0, {"name": "main", "image": "flamefleet-burn:dev", "imagePullPolicy": "Never",
                              "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "50m", "memory": "32Mi"}}})
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": containers}}


class Plugin(Scenario):
    """`kubectl flamefleet`, as people run it."""

    def flamefleet(self, *arguments, kubeconfig=None):
        """Exit code, standard output and standard error."""
        environment = {**self.kubectl.environment, "PATH": f"{paths.REPOSITORY}/build/release/bin:{os.environ['PATH']}"}
        if kubeconfig:
            environment["KUBECONFIG"] = str(kubeconfig)
        done = subprocess.run([self.kubectl.binary, "flamefleet", *arguments], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        return done.returncode, done.stdout, done.stderr

    def answered(self, *arguments, wanted="", **options):
        """Its output, once it ends with 0 and has `wanted` in it."""
        def output():
            code, out, _ = self.flamefleet(*arguments, **options)
            return code == 0 and wanted in out and out
        return self.eventually(f"kubectl flamefleet {' '.join(arguments)} says {wanted}", output)

    def test_status_tells_who_is_profiled_and_who_is_not(self):
        def states():
            pods = json.loads(self.answered("status", "-n", "shop", "-o", "json"))["pods"]
            return {pod["workload"]["name"]: pod["state"] for pod in pods}
        wanted = {"annotated": "Profiled", "targeted": "Profiled", "gopprof": "Profiled", "private": "NotRequested"}
        self.eventually("every pod has its state", lambda: states() == wanted)
        self.assertEqual(self.flamefleet("status", "deployment/targeted", "-n", "shop")[0], 0)
        code, out, _ = self.flamefleet("status", self.pod_name("private"), "-n", "shop")
        self.assertEqual(code, 1)
        self.assertIn("NotRequested", out)

    def test_top_and_pprof_come_from_the_store_through_the_api_server(self):
        self.answered("top", "deployment/targeted", "-n", "shop", "--limit", "1", wanted="burn_seventy")
        with tempfile.NamedTemporaryFile(suffix=".pb.gz") as file:
            memory = ("deployment/gopprof", "--type", "memory:alloc_space", "-n", "shop")
            self.answered("top", *memory, wanted="main.buildRows")
            self.assertEqual(self.flamefleet("pprof", *memory, "-o", file.name)[0], 0)
            top = parse_top(run("go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", "-unit=B", file.name))
        self.assertGreater(top.share["main.buildRows"], 50)
        code, out, errors = self.flamefleet("top", "deployment/private", "-n", "shop")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("no profiles in the store", errors)

    def test_profiles_are_for_those_who_have_the_role(self):
        self.kubectl("create", "serviceaccount", "reader", "-n", "shop")
        self.addCleanup(self.kubectl, "delete", "serviceaccount", "reader", "-n", "shop")
        config = json.loads(self.kubectl("config", "view", "--raw", "-o", "json"))
        config["users"] = [{"name": "reader", "user": {
            "token": self.kubectl("create", "token", "reader", "-n", "shop").strip()}}]
        for context in config["contexts"]:
            context["context"]["user"] = "reader"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        kubeconfig = Path(folder.name, "kubeconfig")
        kubeconfig.write_text(json.dumps(config))
        top = ("top", "deployment/annotated", "-n", "shop", "--backend", "default")
        code, out, errors = self.flamefleet(*top, kubeconfig=kubeconfig)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("flamefleet-profile-reader", errors)
        self.kubectl("create", "rolebinding", "reader", "-n", NAMESPACE, "--clusterrole=flamefleet-profile-reader",
                     "--serviceaccount=shop:reader")
        self.addCleanup(self.kubectl, "delete", "rolebinding", "reader", "-n", NAMESPACE)
        self.answered(*top, wanted="burn_seventy", kubeconfig=kubeconfig)
