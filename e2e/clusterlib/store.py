# SPDX-License-Identifier: Apache-2.0
"""Reads profiles back from a flamefleet-store. What they hold is judged by `go tool pprof`, which we did not write."""

import base64
import re
import ssl
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field

from .shell import run

TIMEOUT_SECONDS = 20
REFUSED_SECONDS = 20  # a ready pod is behind its Service only when the proxy of the node has heard of it
# "Showing nodes accounting for 2100ms, 100% of 2100ms total"
_TOTAL = re.compile(r"of ([0-9.]+)\S* total")
# "    1470ms 70.00% 70.00%     1480ms 70.48%  burn_seventy"
_ROW = re.compile(r"^\s*([0-9.]+)\S*\s+[0-9.]+%\s+[0-9.]+%\s+([0-9.]+)\S*\s+([0-9.]+)%\s+(.+?)(?: \(inline\))?$")


@dataclass(frozen=True)
class Top:
    """Functions of a merged profile. An empty one means that the store has nothing for the query."""
    total: float = 0.0
    share: dict = field(default_factory=dict)  # function -> percent of the total that was spent in or below it


class Store:
    """`password` of the user `reader`; `authority`: PEM that signs its certificate, whose name is not that of the URL."""

    def __init__(self, url, password="", authority=""):
        self.url = url
        self.headers = {}
        self.tls = None
        if password:
            self.headers["Authorization"] = "Basic " + base64.b64encode(f"reader:{password}".encode()).decode()
        if authority:
            self.tls = ssl.create_default_context(cadata=authority)
            self.tls.check_hostname = False

    def open(self, url, data=None, headers=None):
        request = urllib.request.Request(url, data=data, headers=self.headers if headers is None else headers)
        return urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=self.tls)

    def pprof_url(self, query, since, until="now"):
        parameters = urllib.parse.urlencode({"query": query, "from": since, "until": until})
        return f"{self.url}/pprof?{parameters}"

    def top(self, query, since, until="now", unit="ms"):
        """The merged profile of all series that match, between two times (now-1m, RFC 3339, Unix seconds)."""
        data = self.download(query, since, until)
        if not data:
            return Top()
        with tempfile.NamedTemporaryFile(suffix=".pb.gz") as file:
            file.write(data)
            file.flush()
            return parse_top(run("go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", f"-unit={unit}",
                                 file.name))

    def download(self, query, since, until="now"):
        """A gzip-compressed pprof, or nothing when no series matches."""
        try:
            return self._read(self.pprof_url(query, since, until))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return b""
            raise

    def get(self, path, **parameters):
        url = f"{self.url}{path}?{urllib.parse.urlencode(parameters)}"
        return self._read(url).decode()

    def _read(self, url):
        """An answer of the store, whatever its code; no answer is waited for."""
        deadline = time.monotonic() + REFUSED_SECONDS
        while True:
            try:
                with self.open(url) as answer:
                    return answer.read()
            except urllib.error.HTTPError:
                raise
            except OSError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.2)


def parse_top(text):
    total = _TOTAL.search(text)
    rows = [row for row in map(_ROW.match, text.splitlines()) if row]
    return Top(float(total[1]) if total else 0.0, {row[4]: float(row[3]) for row in rows})
