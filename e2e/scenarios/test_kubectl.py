# SPDX-License-Identifier: Apache-2.0
"""`kubectl flamefleet` as people use it on a cluster: why a pod is profiled, its hottest functions, its profile, and the page of
the store in a browser."""

import json
import os
import re
import signal
import subprocess
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

from clusterlib import images
from clusterlib.shell import run
from clusterlib.store import parse_top
from scenarios.support import Scenario

END_SECONDS = 30
ANSWER_SECONDS = 20
ENOUGH_MILLIS = 3000  # 300 samples: a share of 70 % is right within 8 points, three standard deviations
# What a desktop's opener would get, as a file.
OPENER = """#!/bin/sh
printf %s "$1" > "{address}.new" && mv "{address}.new" "{address}"
"""


def arguments_of(pid):
    """None when it has ended, also when nobody has asked how."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") or None
    except OSError:
        return None


class Plugin(Scenario):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="flamefleet-kubectl-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        path = [self.folder, images.BUILT_HERE, self.kubectl.binary.parent, os.environ["PATH"]]
        self.environment = {**self.kubectl.environment, "PATH": ":".join(map(str, path)), "DISPLAY": ":0"}

    def flamefleet(self, *arguments, check=True):
        return run("kubectl", "flamefleet", *arguments, env=self.environment, check=check)

    def states(self):
        """What `status` says of each workload of the namespace; its exit code says no when a pod fails."""
        pods = json.loads(self.flamefleet("status", "-n", "shop", "-o", "json", check=False))["pods"]
        return {pod["workload"]["name"]: pod["state"] for pod in pods if "workload" in pod}

    def test_status_knows_who_is_profiled_and_who_is_not(self):
        def known():
            states = self.states()
            # What annotations ask for is counted per AgentPool, and another pod of it may be idle.
            return states.get("targeted") == "Profiled" and states.get("annotated") in ("Profiled", "Collecting")
        self.eventually("status says so", known)
        self.assertEqual(self.states().get("private"), "NotRequested")
        said = self.flamefleet("status", self.pod_name("targeted"), "-n", "shop")
        self.assertRegex(said, r"State: +Profiled\n")
        self.assertRegex(said, r"cpu: eBPF of container burn, to default as service \S+ +\[ProfilingTarget targeted\]")

    def test_top_and_pprof_give_the_profile_of_a_workload(self):
        self.eventually("top names the hottest function", lambda: "burn_seventy" in self.flamefleet(
            "top", "deployment/targeted", "-n", "shop", check=False))
        file = self.folder / "cpu.pb.gz"

        def enough():
            self.flamefleet("pprof", "deployment/targeted", "-n", "shop", "-o", file)
            top = parse_top(run("go", "tool", "pprof", "-top", "-unit=ms", file))
            return top.total > ENOUGH_MILLIS and top
        top = self.eventually("the profile has samples enough to judge shares by", enough)
        self.assertAlmostEqual(top.share["burn_seventy"], 70, delta=15)

    def test_open_shows_the_page_of_a_workload_until_it_is_interrupted(self):
        address = self.folder / "address"
        opener = self.folder / "xdg-open"
        opener.write_text(OPENER.format(address=address))
        opener.chmod(0o755)
        process = subprocess.Popen(["kubectl", "flamefleet", "open", "deployment/annotated", "-n", "shop"],
                                   env=self.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        url = process.stdout.readline().strip()
        self.assertTrue(url.startswith("http://127.0.0.1:"), url)
        self.assertEqual(self.eventually("the browser is told", lambda: address.exists() and address.read_text()), url)
        self.assertRegex(urllib.parse.unquote(url), r"/\?view=single&filter=namespace=.shop.,pod=~.annotated-")

        page = self.fetch(url, "text/html")  # as browsers ask
        self.assertIn("<title>Flamefleet", page)
        script = re.search(r'<script[^>]* src="(/[^"]+)"', page)[1]
        self.assertTrue(self.fetch(urllib.parse.urljoin(url, script)))
        query = {"query": "process_cpu{" + urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["filter"][0] + "}",
                 "from": "now-5m"}
        self.eventually("the page's store answers with the hottest function", lambda: "burn_seventy" in self.fetch(
            urllib.parse.urljoin(url, "/top?" + urllib.parse.urlencode(query))))

        children = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        forwards = [pid for pid in children if b"port-forward" in (arguments_of(pid) or [])]
        self.assertEqual(len(forwards), 1, children)
        process.send_signal(signal.SIGINT)  # to it alone: a terminal would tell its child, too
        self.assertEqual(process.wait(END_SECONDS), -signal.SIGINT)
        self.eventually("the port-forward has ended, too", lambda: b"port-forward" not in (arguments_of(forwards[0]) or []))
        with self.assertRaises(OSError):
            self.fetch(url)

    @staticmethod
    def fetch(url, accept="*/*"):
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=ANSWER_SECONDS) as answer:
            return answer.read().decode()

    def test_what_is_missing_is_said(self):
        for arguments, said in ((["status", "nobody", "-n", "shop"], "nobody"),
                                (["top", "deployment/annotated", "-n", "shop", "--backend", "none"], "flamefleet-store-none"),
                                (["open", "--backend", "none"], "flamefleet-store-none")):
            answer = subprocess.run(["kubectl", "flamefleet", *arguments], env=self.environment, text=True, capture_output=True,
                                    timeout=END_SECONDS, check=False)
            self.assertEqual((answer.returncode, answer.stdout), (2, ""), arguments)
            self.assertIn(said, answer.stderr)
