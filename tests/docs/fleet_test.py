#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a fleet that really runs says of itself, against docs/metrics.md and promtool. FF_UPDATE_DOCS=1 writes the page."""

import os
import subprocess
import sys
import unittest

import metrics_reference
from host_fleet import ROOT, HostFleet, get, wait_until

PAGE = ROOT / "docs/metrics.md"


class FleetTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.fleet = HostFleet()
        cls.addClassCleanup(cls.fleet.close)
        # The agent's and the leading operator's are complete by then.
        wait_until("CPU samples are in a profile that the store acknowledged", cls.cpu_delivered)
        cls.expositions = {program: get(f"{url}/metrics") for program, url in cls.fleet.urls.items()}

    @classmethod
    def cpu_delivered(cls):
        return "process_cpu" in (get(f"{cls.fleet.urls['store']}/series") or "")

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


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: BPF and cgroups need root")
        sys.exit(1 if os.environ.get("CI") else 0)
    sys.exit(unittest.main())
