# SPDX-License-Identifier: Apache-2.0
"""A store that is away loses no profile: what was sampled meanwhile arrives afterwards, with its own times, once.

FF_OUTAGE_SECONDS makes it longer than in `make test`: `make outage` does.
"""

import contextlib
import os
import signal
import threading
import time
import urllib.error
import urllib.request

from scenarios.support import DEADLINE_SECONDS, WINDOW_SECONDS, Scenario, processes

OUTAGE_SECONDS = int(os.environ.get("FF_OUTAGE_SECONDS", "40"))
# The kubelet restarts a store that hangs, at intervals that grow up to five minutes.
RECOVERY_SECONDS = DEADLINE_SECONDS + (330 if OUTAGE_SECONDS > 100 else 0)
APP = "annotated"
# Profiles are counted by whole windows, two of which reach over the ends; a profile that is there twice or not at all is
# beyond these.
LEAST, MOST = 0.6, 1.6
# What waits is on disk: the agents' memory grows no more than by what they still learn of the node. In bytes.
MOST_GROWTH = 24 << 20


class Outage(Scenario):
    def undelivered(self):
        """What an agent says that delivers nothing; "" when none says so."""
        for pod in self.agent_pods():
            try:
                urllib.request.urlopen(f"http://{pod['status']['podIP']}:9090/readyz", timeout=20).close()
            except urllib.error.HTTPError as error:
                return error.read().decode()
        return ""

    def stop_store(self):
        """Keeps the store, and whatever the kubelet starts in its place, from running; returns how to end that."""
        back = threading.Event()

        def stop():
            while not back.wait(0.2):
                tell(signal.SIGSTOP)

        def go_on():
            back.set()
            thread.join()
            tell(signal.SIGCONT)

        def tell(what):
            for pid in processes("flamefleet-store"):
                with contextlib.suppress(ProcessLookupError):  # the kubelet has just ended it
                    os.kill(pid, what)

        self.assertEqual(len(list(processes("flamefleet-store"))), 1)
        thread = threading.Thread(target=stop, daemon=True)
        thread.start()
        self.addCleanup(go_on)
        return go_on

    def test_profiles_of_an_outage_arrive_afterwards_once_and_with_their_own_times(self):
        self.eventually("profiles arrive", lambda: self.cpu(APP, self.since).total > 0)
        before = self.books()
        go_on = self.stop_store()
        away, used = int(time.time()), -self.cpu_millis(APP)
        self.eventually("the backend says that it is not reachable", lambda: not self.fleet.condition(
            "profilingbackend", "default", condition="Ready"))
        # It is seen at the agents, and none of them is to blame: a rolling update would go on.
        said = self.eventually("an agent says that it delivers nothing", self.undelivered)
        self.assertIn("no profile is delivered", said)
        for pod in self.agent_pods():
            self.assertIn(("Ready", "True"), [(c["type"], c["status"]) for c in pod["status"]["conditions"]])
        # The outage is the subject here: it lasts as long as it was asked to.
        time.sleep(max(0, away + OUTAGE_SECONDS - time.time()))
        during = self.books()
        back, used = int(time.time()), used + self.cpu_millis(APP)
        go_on()
        self.assertGreater(during["waiting"], 0)
        grown = during["memory_used_bytes"] - before["memory_used_bytes"]
        self.assertLess(grown, MOST_GROWTH)

        self.eventually("the backend is ready again", lambda: self.fleet.condition("profilingbackend", "default"),
                        RECOVERY_SECONDS)
        self.eventually("nothing of the outage waits any more", lambda: self.books()["waiting"] == 0,
                        RECOVERY_SECONDS)
        arrived = self.cpu(APP, away, back).total
        print(f"   {back - away} s away, {during['waiting']:.0f} profiles waited, memory of the agents grew by "
              f"{grown / (1 << 20):.1f} MiB; of {used:.0f} ms CPU {arrived:.0f} ms arrived")
        self.assertGreater(arrived, LEAST * used)
        self.assertLess(arrived, MOST * used)

        books = self.eventually("the books balance", self.balanced_books)
        self.assertEqual(books["dropped"], before["dropped"], books)
