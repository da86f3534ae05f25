#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The exporters of the OpenTelemetry collector send OTLP profiles to a store: what it holds then has the totals of what
they sent, function by function, as `go tool pprof` counts both."""

import pathlib
import subprocess
import unittest
import urllib.error
import urllib.request

from harness import BUILT, DEADLINE_SECONDS, StoreTestCase, totals

PROFILES = pathlib.Path(__file__).resolve().parent.parent / "data/pprof"
HEAP = dict.fromkeys(("alloc_objects", "alloc_space", "inuse_objects", "inuse_space"), "memory")
# What each file has: its sample types, with their profile types in the store.
SENT = {
    "real_allocs": HEAP,
    "real_block": {"contentions": "mutex", "delay": "mutex"},
    "real_cpu": {"samples": "process_cpu", "cpu": "process_cpu"},
    "real_goroutine": {"goroutine": "goroutines"},
    "sdk_go_heap": HEAP,
    "sdk_node_wall": {"samples": "process_cpu", "wall": "wall", "cpu": "process_cpu"},
}


class OtlpTest(StoreTestCase):
    flags = ("--otlp-listen", "127.0.0.1:0")

    def export(self, protocol, endpoint, token="sender"):
        """Of all files, in one request."""
        files = [PROFILES / f"{name}.pb.gz" for name in SENT]
        return subprocess.run([BUILT / "go/otlpexport", protocol, endpoint, token, *files],
                              capture_output=True, text=True, timeout=DEADLINE_SECONDS)

    def check_store(self, protocol):
        for name, types in SENT.items():
            for sample_type, profile_type in types.items():
                with self.subTest(file=name, sample_type=sample_type):
                    sent = totals(sample_type, [PROFILES / f"{name}.pb.gz"])
                    stored = self.profile_in_store(profile_type, sample_type, f"{protocol}-{name}")
                    self.assertEqual(totals(sample_type, [stored]), sent)

    def test_exporter_over_http(self):
        sent = self.export("http", self.store_url)
        self.assertEqual((sent.returncode, sent.stderr), (0, ""))
        self.check_store("http")

    def test_exporter_over_grpc(self):
        sent = self.export("grpc", self.otlp_address)
        self.assertEqual((sent.returncode, sent.stderr), (0, ""))
        self.check_store("grpc")

    def test_exporter_is_told_why_it_is_refused(self):
        sent = self.export("http", self.store_url, token="wrong")
        self.assertNotEqual(sent.returncode, 0)
        self.assertIn("401", sent.stderr)
        sent = self.export("grpc", self.otlp_address, token="reader")
        self.assertNotEqual(sent.returncode, 0)
        self.assertIn("PermissionDenied", sent.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
