#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""config/prometheus/rules.yaml: promtool takes the rules, each alert fires for its fault and for nothing else, is
explained in docs/alerts.md, and asks only for metrics that docs/metrics.md has."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import metrics_reference
import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RULES = yaml.safe_load((ROOT / "config/prometheus/rules.yaml").read_text())["spec"]
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule]
CASES = yaml.safe_load((HERE / "alerts_test.yaml").read_text())
END = "90m"


def promtool(*arguments):
    return subprocess.run(["promtool", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)


class RulesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="flamefleet-rules-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "rules.yaml").write_text(yaml.safe_dump(RULES))

    def test_promtool_takes_the_rules(self):
        result = promtool("check", "rules", str(self.folder / "rules.yaml"))
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_each_alert_fires_for_its_fault_and_for_nothing_else(self):
        cases = [{"fires": [], "series": {}}, *CASES["faults"]]
        self.assertEqual({name for case in cases for name in case["fires"]}, {rule["alert"] for rule in ALERTS})
        tests = []
        for number, case in enumerate(cases):
            series = {name: values for name, values in {**CASES["healthy"], **case["series"]}.items() if values}
            # How many alerts of that name fire: the labels and texts are in the rules already.
            expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
            tests.append({
                "name": f"case {number}: {case['fires']}", "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [{"expr": expression, "eval_time": END, "exp_samples": [
                    {"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(case["fires"])]}]})
        (self.folder / "test.yaml").write_text(yaml.safe_dump(
            {"rule_files": ["rules.yaml"], "evaluation_interval": "5m", "tests": tests}))
        result = promtool("test", "rules", str(self.folder / "test.yaml"))
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_each_alert_has_a_runbook(self):
        page = (ROOT / "docs/alerts.md").read_text()
        headings = re.findall(r"^## (\w+)$", page, re.MULTILINE)
        self.assertEqual(sorted(headings), sorted(rule["alert"] for rule in ALERTS))
        for rule in ALERTS:
            self.assertEqual(rule["annotations"]["runbook_url"], f"docs/alerts.md#{rule['alert'].lower()}")
            self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"))

    def test_the_metrics_exist(self):
        known = metrics_reference.names((ROOT / "docs/metrics.md").read_text())
        for group in RULES["groups"]:
            for rule in group["rules"]:
                self.assertEqual(metrics_reference.used(rule["expr"]) - known, set(), rule["expr"])


if __name__ == "__main__":
    sys.exit(unittest.main())
