# SPDX-License-Identifier: Apache-2.0
"""A kube-apiserver for the tests of this folder, and the programs that people use with one."""

import atexit
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"
NAMESPACE = "flamefleet-system"
DEADLINE_SECONDS = 120
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.77.2"

sys.path.insert(0, str(ROOT / "e2e"))
from clusterlib import binaries  # noqa: E402


def operator():
    """Our operator's program."""
    return os.environ.get("FF_OPERATOR_BINARY", ROOT / "build/release/bin/flamefleet-operator")


@functools.cache
def clients():
    """The folder with helm and our `health`; builds them when their inputs have changed."""
    return binaries.ensure_clients()


def prometheus_operator():
    """The sources of the Prometheus operator, with its kinds."""
    command = ["go", "mod", "download", "-json", PROMETHEUS_OPERATOR]
    return pathlib.Path(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["Dir"])


def wait_until(what, condition):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {DEADLINE_SECONDS} s")
        time.sleep(0.2)


class ApiServer:
    """etcd and kube-apiserver, if wanted with the controllers that need no node. They end with this process."""

    def __init__(self, *flags):
        self._folder = tempfile.TemporaryDirectory(prefix="flamefleet-config-")
        command = [ROOT / "e2e" / "cluster", "apiserver", "--dir", f"{self._folder.name}/api", "--stop-on-eof", *flags]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.kubeconfig = self._server.stdout.readline().strip()
        assert self.kubeconfig, "the API server did not start"
        self.kubectl_path = pathlib.Path(self._folder.name, "api", "kubectl")
        self.environment = {**os.environ, "KUBECONFIG": self.kubeconfig}

    def stop(self):
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait(timeout=90)
        self._folder.cleanup()

    def run(self, *argv, stdin="", check=False):
        """Runs a program, which finds this API server by $KUBECONFIG. `output` of the result has both of its streams."""
        result = subprocess.run([str(a) for a in argv], input=stdin, env=self.environment, text=True, capture_output=True)
        result.output = result.stdout + result.stderr
        if check and result.returncode != 0:
            raise AssertionError(f"{' '.join(str(a) for a in argv)}: {result.output}")
        return result

    def kubectl(self, *arguments, stdin="", check=False):
        return self.run(self.kubectl_path, *arguments, stdin=stdin, check=check)

    def create(self, items):
        """Creates the objects and returns them as the API server has them then."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        result = self.kubectl("create", "--validate=false", "-f", "-", "-o", "json", stdin=text, check=True)
        decoder, rest, made = json.JSONDecoder(), result.stdout.lstrip(), []
        while rest:
            item, end = decoder.raw_decode(rest)
            made.append(item)
            rest = rest[end:].lstrip()
        return made

    def wait_for_kinds(self):
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all", check=True)


@functools.cache
def installed():
    """The one server of a test run, with the controllers that need no node, config/default, and a namespace `shop`."""
    server = ApiServer("--controllers")
    atexit.register(server.stop)
    server.kubectl("apply", "-k", CONFIG / "default", check=True)
    server.wait_for_kinds()
    server.kubectl("create", "namespace", "shop", check=True)
    return server
