# SPDX-License-Identifier: Apache-2.0
"""A store that is away loses no profile: what was sampled meanwhile arrives afterwards, with its own times, once.

FF_OUTAGE_SECONDS makes it longer than in `make test`.
"""

import os
import re
import signal
import time
import urllib.request
from pathlib import Path

from clusterlib.fleet import NAMESPACE
from scenarios.support import WINDOW_SECONDS, Scenario

OUTAGE_SECONDS = int(os.environ.get("FF_OUTAGE_SECONDS", "60"))
APP = "annotated"
# Two windows, since one begins now before and now after a bound.
SLOT_SECONDS = 2 * WINDOW_SECONDS
# The load is a share of a CPU that does not change; so much may one slot differ from the mean of all on a busy machine.
FACTOR = 3
_SAMPLE = re.compile(r"^(flamefleet_agent_profiles_\w+)(?:\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)


def store_pids():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = path.read_bytes().split(b"\0")
            in_pod = b"kubepods" in path.with_name("cgroup").read_bytes()
        except OSError:
            continue  # it has just ended
        if in_pod and argv[0].endswith(b"flamefleet-store"):
            yield int(path.parent.name)


class Outage(Scenario):
    def books(self):
        """Sums over all agents of what was produced, delivered, dropped, ... and what waits."""
        sums = {}
        for pod in self.kubectl.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=agent")["items"]:
            with urllib.request.urlopen(f"http://{pod['status']['podIP']}:9090/metrics", timeout=20) as answer:
                for name, value in _SAMPLE.findall(answer.read().decode()):
                    sums[name] = sums.get(name, 0) + float(value)
        return {name.removeprefix("flamefleet_agent_profiles_").removesuffix("_total"): value
                for name, value in sums.items()}

    def test_profiles_of_an_outage_arrive_afterwards_once_and_with_their_own_times(self):
        self.eventually("profiles arrive", lambda: self.cpu(APP, self.since).total > 0)
        stopped = list(store_pids())
        self.assertEqual(len(stopped), 1)
        os.kill(stopped[0], signal.SIGSTOP)
        self.addCleanup(os.kill, stopped[0], signal.SIGCONT)
        away = int(time.time())
        self.eventually("the backend says that it is not reachable", lambda: not self.fleet.condition(
            "profilingbackend", "default", condition="Ready"))
        # The outage is the subject here: it lasts as long as it was asked to.
        time.sleep(max(0, away + OUTAGE_SECONDS - time.time()))
        self.assertGreater(self.books()["waiting"], 0)
        os.kill(stopped[0], signal.SIGCONT)
        back = int(time.time())

        self.eventually("nothing waits any more", lambda: self.books()["waiting"] == 0)
        self.eventually("the backend is ready again", lambda: self.fleet.condition("profilingbackend", "default"))
        self.eventually("profiles after the outage arrive",
                        lambda: self.cpu(APP, back + 2 * WINDOW_SECONDS).total > 0)

        # Each slot of the outage has its profiles, and none has them twice.
        totals = [self.cpu(APP, begin, begin + SLOT_SECONDS).total
                  for begin in range(away, back - SLOT_SECONDS + 1, SLOT_SECONDS)]
        mean = sum(totals) / len(totals)
        for total in totals:
            self.assertGreater(total, mean / FACTOR, totals)
            self.assertLess(total, mean * FACTOR, totals)

        def balanced():
            books = self.books()
            came = books["produced"] + books["recovered"] + books["split"]
            return came == books["delivered"] + books["dropped"] + books["waiting"] and books
        books = self.eventually("the books balance", balanced)
        self.assertEqual(books["dropped"], 0, books)
