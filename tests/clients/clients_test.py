#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SDKs of Pyroscope push to a store: what it holds then has the totals of what they sent, function by function, as
`go tool pprof` counts both."""

import contextlib
import os
import pathlib
import re
import subprocess
import time
import unittest

import recorder
from harness import BUILT, DEADLINE_SECONDS, StoreTestCase, totals

HERE = pathlib.Path(__file__).resolve().parent
CONTENTIONS = ("contentions", "delay")
# By what a client sends: the profile type in the store.
GO_KINDS = {
    ("samples", "cpu"): "process_cpu",
    ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space"): "memory",
    ("goroutine",): "goroutine",
    ("mutex", *CONTENTIONS): "mutex",
    ("block", *CONTENTIONS): "block",
}
NODE_KINDS = {("samples", "wall", "cpu"): "wall", ("inuse_objects", "inuse_space"): "memory"}
PYTHON_KINDS = {("cpu",): "process_cpu"}


class ClientsTest(StoreTestCase):
    def run_client(self, command, kinds, recording):
        """Until it has sent a profile of each kind that has something in it."""
        with subprocess.Popen([*command, recording.url, "sdk", "hush"], stdin=subprocess.PIPE) as client:
            deadline = time.monotonic() + DEADLINE_SECONDS
            try:
                while not kinds <= {profile.kind for profile in recording.profiles if profile.samples}:
                    self.assertIsNone(client.poll(), "the client ended")
                    self.assertLess(time.monotonic(), deadline, f"got {[p[::2] for p in recording.profiles]}")
                    time.sleep(0.05)
                client.stdin.close()
                self.assertEqual(client.wait(DEADLINE_SECONDS), 0)
            finally:
                client.kill()

    def check(self, service, command, kinds, leaf):
        with contextlib.closing(recorder.Recorder(self.store_url)) as recording:
            self.run_client(command, kinds.keys(), recording)
        self.assertEqual(recording.refused, [])
        self.assertLessEqual({profile.kind for profile in recording.profiles}, kinds.keys())
        seen = set()
        for kind, profile_type in kinds.items():
            files = []
            for profile in recording.profiles:
                if profile.kind == kind and profile.samples:
                    files.append(self.directory / f"{service}-{profile_type}-{len(files)}.sent")
                    files[-1].write_bytes(profile.pprof)
            for sample_type in kind[-2:] if kind[-2:] == CONTENTIONS else kind:
                with self.subTest(profile_type=profile_type, sample_type=sample_type):
                    sent = totals(sample_type, files)
                    self.assertNotEqual(sent, [])
                    self.assertEqual(
                        totals(sample_type, [self.profile_in_store(profile_type, sample_type, service)]), sent)
                    seen |= {name for _, _, name in sent}
        self.assertTrue([name for name in seen if re.search(leaf, name)], seen)

    def test_pyroscope_go(self):
        self.check("go-client", [BUILT / "go/pyroscope"], GO_KINDS, r"^main\.hotLeaf$")

    def test_pyroscope_nodejs(self):
        os.environ["FF_NODE_MODULES"] = str(BUILT / "node")
        self.check("node-client", [os.environ["FF_NODE"], HERE / "node/client.mjs"], NODE_KINDS, "hotLeaf")

    def test_pyroscope_io_of_python(self):
        os.environ["PYTHONPATH"] = str(BUILT / "python")
        self.check("python-client", [os.environ["FF_PYTHON"], HERE / "python/client.py"], PYTHON_KINDS, "hot_leaf")


if __name__ == "__main__":
    unittest.main(verbosity=2)
