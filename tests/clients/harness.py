# SPDX-License-Identifier: Apache-2.0
"""A store for the tests with clients, and `go tool pprof` to count what it holds."""

import functools
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import urllib.parse
import urllib.request

BUILT = pathlib.Path(os.environ["FF_CLIENTS"])  # what CMake installed and built
DEADLINE_SECONDS = 120
CREDENTIALS = """
write basic sdk:hush
write bearer sender
read bearer reader
"""


@functools.cache
def pprof_tool():
    return subprocess.run(["go", "tool", "-n", "pprof"], check=True, capture_output=True, text=True).stdout.strip()


def totals(sample_type, files):
    """Flat and cumulated values of all functions in the sum of the files."""
    unit = "B" if sample_type.endswith("_space") else "ns"
    text = subprocess.run(
        [pprof_tool(), "-top", "-symbolize=none", "-nodecount=0", "-nodefraction=0", "-edgefraction=0",
         f"-unit={unit}", f"-sample_index={sample_type}", *files],
        check=True, capture_output=True, text=True).stdout
    rows = text.split("flat  flat%   sum%        cum   cum%\n", 1)[1].splitlines()
    return sorted((flat, cum, name) for flat, _, _, cum, _, name in (row.split(None, 5) for row in rows))


class StoreTestCase(unittest.TestCase):
    """A store of its own, with credentials."""
    maxDiff = None
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        os.environ["PPROF_TMPDIR"] = str(cls.directory)
        credentials = cls.directory / "credentials"
        credentials.write_text(CREDENTIALS)
        store = cls.enterClassContext(subprocess.Popen(
            [os.environ["FF_STORE_BINARY"], "--listen", "127.0.0.1:0", "--data", cls.directory / "store",
             "--auth-file", credentials, *cls.flags], stderr=subprocess.PIPE, text=True))
        cls.addClassCleanup(store.terminate)
        said = {}
        while "port" not in said:  # that comes last
            said |= json.loads(store.stderr.readline())
        cls.store_url = f"http://127.0.0.1:{said['port']}"
        cls.otlp_address = f"127.0.0.1:{said.get('otlp_port')}"

    def profile_in_store(self, profile_type, sample_type, service):
        """The path of what the store gives for all profiles of a service that has the label team="a.b"."""
        query = urllib.parse.urlencode({"query": f'{profile_type}:{sample_type}{{service_name="{service}",team="a.b"}}', "levels": "sum"})
        request = urllib.request.Request(f"{self.store_url}/pprof?{query}", headers={"Authorization": "Bearer reader"})
        path = self.directory / f"{service}-{profile_type}-{sample_type}.pb.gz"
        with urllib.request.urlopen(request) as answer:
            path.write_bytes(answer.read())
        return path
