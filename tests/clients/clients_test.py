#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SDKs of Pyroscope push to a store: what it holds then has the totals of what they sent, function by function, as
`go tool pprof` counts both."""

import contextlib
import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

import recorder

HERE = pathlib.Path(__file__).resolve().parent
BUILT = pathlib.Path(os.environ["FF_CLIENTS"])  # what CMake installed and built for this test
DEADLINE_SECONDS = 120
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
CREDENTIALS = "write basic sdk:hush\nread bearer reader\n"


@functools.cache
def pprof_tool():
    return subprocess.run(["go", "tool", "-n", "pprof"], check=True, capture_output=True, text=True).stdout.strip()


def totals(sample_type, files):
    """Flat and cumulated values of all functions in the sum of the files."""
    unit = {"inuse_space": "B", "alloc_space": "B"}.get(sample_type, "ns")
    text = subprocess.run(
        [pprof_tool(), "-top", "-symbolize=none", "-nodecount=0", "-nodefraction=0", "-edgefraction=0",
         f"-unit={unit}", f"-sample_index={sample_type}", *files],
        check=True, capture_output=True, text=True).stdout
    rows = text.split("flat  flat%   sum%        cum   cum%\n", 1)[1].splitlines()
    return sorted((flat, cum, name) for flat, _, _, cum, _, name in (row.split(None, 5) for row in rows))


class ClientsTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        os.environ["PPROF_TMPDIR"] = str(cls.directory)
        credentials = cls.directory / "credentials"
        credentials.write_text(CREDENTIALS)
        store = cls.enterClassContext(subprocess.Popen(
            [os.environ["FF_STORE_BINARY"], "--listen", "127.0.0.1:0", "--data", cls.directory / "store",
             "--auth-file", credentials], stderr=subprocess.PIPE, text=True))
        cls.addClassCleanup(store.terminate)
        port = next(filter(None, (json.loads(line).get("port") for line in store.stderr)))
        cls.store_url = f"http://127.0.0.1:{port}"

    def profile_in_store(self, profile_type, sample_type, service):
        query = urllib.parse.urlencode({"query": f'{profile_type}:{sample_type}{{service_name="{service}",team="a.b"}}'})
        request = urllib.request.Request(f"{self.store_url}/pprof?{query}", headers={"Authorization": "Bearer reader"})
        path = self.directory / f"{service}-{profile_type}-{sample_type}.pb.gz"
        with urllib.request.urlopen(request) as answer:
            path.write_bytes(answer.read())
        return path

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
