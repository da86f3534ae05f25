#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a fleet that really runs says of itself: against docs/metrics.md, promtool, and a Prometheus that scrapes it
and is asked what the dashboards and the rules ask. The commands of the pages run on it. FF_UPDATE_DOCS=1 writes
docs/metrics.md."""

import json
import os
import shutil
import subprocess
import sys
import unittest

import commands
import metrics_reference
import yaml
from host_fleet import BIN, ROOT, HostFleet, get, wait_until

from clusterlib.prometheus import DASHBOARDS, RULES, queries

PAGE = ROOT / "docs/metrics.md"


class FleetTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.fleet = HostFleet()
        cls.addClassCleanup(cls.fleet.close)
        cls.prometheus = cls.fleet.run_prometheus()
        # The metrics of the agent and of the leading operator are complete by then.
        wait_until("CPU samples are in a profile that the store acknowledged", cls.cpu_delivered)
        cls.expositions = {program: wait_until(f"{program} answers", lambda url=url: get(f"{url}/metrics"))
                           for program, url in cls.fleet.urls.items()}

    @classmethod
    def cpu_delivered(cls):
        return "process_cpu" in (get(f"{cls.fleet.urls['store']}/series") or "")

    def test_every_query_of_every_dashboard_has_an_answer(self):
        self.assertEqual(len(DASHBOARDS), 5)
        known = metrics_reference.names(metrics_reference.render(self.expositions))
        wait_until("every program was scraped a few times",
                   lambda: len(self.prometheus.query("sum_over_time(up[1m]) >= 3")) == 3)
        for board, panel, expression in queries():
            with self.subTest(board, panel=panel, query=expression):
                self.assertEqual(metrics_reference.used(expression) - known, set())
                # A busy machine may miss a scrape, which empties some for a moment.
                wait_until("there is data", lambda expression=expression: self.prometheus.query(expression))

    def test_prometheus_counts_what_the_fleet_does(self):
        for expression in ("sum(flamefleet_operator_pods) >= 1", "sum(flamefleet_operator_agents_connected) == 1",
                           "sum(flamefleet_agent_profiles_delivered_total) > 0", "sum(flamefleet_store_disk_bytes) > 0",
                           'sum(flamefleet_operator_objects{kind="ProfilingTarget"}) >= 1',
                           "sum(flamefleet_agent_samples_total) > 0"):
            wait_until(expression, lambda expression=expression: self.prometheus.query(expression))

    def test_prometheus_evaluates_every_rule(self):
        rules = wait_until("every rule was evaluated", self.prometheus.evaluated_rules)
        self.assertEqual({rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"}, {})
        self.assertEqual(len(rules), sum(len(group["rules"]) for group in RULES["groups"]))

    def test_without_a_leader_the_alert_is_pending(self):  # the last one by name: the operator ends
        name = "FlamefleetOperatorNoLeader"
        wait_until("the alert is silent", lambda: name not in self.prometheus.alerts())
        self.fleet.stop("operator")
        wait_until("the alert is pending", lambda: name in self.prometheus.alerts())

    def test_metrics_reference_is_what_the_programs_expose(self):
        page = metrics_reference.render(self.expositions)
        if os.environ.get("FF_UPDATE_DOCS"):
            PAGE.write_text(page)
        self.assertEqual(PAGE.read_text(), page, "docs/metrics.md is not current: make docs-update")

    def test_promtool_finds_no_fault_with_any_metric(self):
        for program, text in self.expositions.items():
            with self.subTest(program):
                result = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, check=False)
                self.assertEqual((result.returncode, result.stdout), (0, ""))

    def test_commands_of_the_pages_run_as_written(self):
        clone = self.fleet.folder / "clone"
        for name in ("config", "crds"):
            shutil.copytree(ROOT / name, clone / name)
        shutil.copytree(ROOT / "config/samples", clone / "apps")
        (clone / "ca.crt").write_text("the authority of the reader's Pyroscope")
        environment = {**os.environ, "KUBECONFIG": self.fleet.kubeconfig, "PPROF_TMPDIR": str(self.fleet.folder),
                       "PATH": f"{self.fleet.folder}/api:{BIN}:{os.environ['PATH']}"}
        not_run = set()
        for page in commands.PAGES:
            for block in commands.blocks((ROOT / page).read_text()):
                for command in commands.split(block):
                    if (reason := commands.reason_not_to_run(command)):
                        not_run.add(reason)
                        continue
                    with self.subTest(page, command=command):
                        result = subprocess.run(["bash", "-ec", commands.as_run(command, self.fleet.urls["store"])],
                                                cwd=clone, env=environment, text=True, stdin=subprocess.DEVNULL,
                                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(not_run, set(commands.NOT_RUN.values()), "a reason for which there is no command any more")

    def test_pod_security_finds_what_the_page_says_of_agents_and_nothing_else(self):
        self.fleet.kubectl("create", "-f", "-", stdin=json.dumps({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "restricted", "labels": {
                f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}}}))
        page = " ".join((ROOT / "docs/security.md").read_text().split())
        for path in [*(ROOT / "tests/golden/operator").glob("*.json"), ROOT / "config/manager/deployment.yaml",
                     ROOT / "config/starter/job.yaml"]:
            workload = yaml.safe_load(path.read_text())
            if "template" not in workload.get("spec", {}):
                continue
            workload["metadata"] = {"name": workload["metadata"]["name"], "namespace": "restricted"}
            said = self.fleet.warnings("create", "--dry-run=server", "-f", "-", stdin=json.dumps(workload))
            with self.subTest(path.name):
                if workload["kind"] == "DaemonSet":
                    self.assertIn("PodSecurity", said)
                    self.assertIn(said.removeprefix("Warning: "), page)
                else:
                    self.assertEqual(said, "")

    def test_objects_in_the_pages_are_valid(self):
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            for text in commands.blocks(page.read_text(), "yaml"):
                if text.startswith("apiVersion:"):
                    with self.subTest(page.name, text=text):
                        text = text.replace("namespace: shop", "namespace: demo")
                        said = self.fleet.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)
                        self.assertIn(yaml.safe_load(text)["metadata"]["name"], said)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: BPF and cgroups need root")
        sys.exit(1 if os.environ.get("CI") else 0)
    sys.exit(unittest.main())
