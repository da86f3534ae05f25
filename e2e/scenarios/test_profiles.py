# SPDX-License-Identifier: Apache-2.0
"""What was asked for arrives with the right labels and numbers, and nothing else does."""

import time

from scenarios.support import FREQUENCY_HZ, Scenario

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
