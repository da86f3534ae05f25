# SPDX-License-Identifier: Apache-2.0
"""HostFleet: a store, an operator and an agent that run for real on this host, against a real API server.

There are no kubelets: the node, and the pod `burner` on it, are objects that we write; the pod's container is a cgroup
with its id in which a program burns CPU. So the agent samples it, pulls a pprof endpoint of the pod, and delivers both.
Needs root. Everything ends with the object."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("FF_BIN", ROOT / "build/release/bin"))
sys.path.insert(0, str(ROOT / "e2e"))

from clusterlib.ports import Ports  # noqa: E402
from clusterlib.prometheus import Prometheus  # noqa: E402

NAMESPACE = "flamefleet-system"
NODE = "host"
OPERATOR_HOST = f"flamefleet-operator.{NAMESPACE}.svc"  # its certificate is for this name
DEADLINE_SECONDS = 120
PPROF = ROOT / "tests/data/pprof/real_goroutine.pb.gz"

BASE = f"""
{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}}}}}
---
{{apiVersion: v1, kind: Namespace, metadata: {{name: demo}}}}
---
{{apiVersion: v1, kind: Node, metadata: {{name: {NODE}}}}}
---
{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: flamefleet-agent, namespace: {NAMESPACE}}}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: burner
  namespace: demo
  labels: {{app: burner, app.kubernetes.io/name: checkout}}
spec:
  nodeName: {NODE}
  containers: [{{name: burn, image: burn}}]
"""

OURS = """
apiVersion: flamefleet.dev/v1alpha1
kind: AgentPool
metadata: {{name: default}}
spec: {{sampling: {{frequency: 97}}}}
---
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingBackend
metadata: {{name: default}}
spec: {{default: true, type: Store, endpoint: "{store}"}}
---
apiVersion: flamefleet.dev/v1alpha1
kind: ProfilingTarget
metadata: {{name: burner, namespace: demo}}
spec:
  selector: {{matchLabels: {{app: burner}}}}
  profiles:
  - {{type: cpu}}
  - {{type: goroutine, pull: {{port: {pprof}, interval: 5s, timeout: 4s}}}}
"""


def wait_until(what, condition):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"gave up after {DEADLINE_SECONDS} s waiting until {what}")
        time.sleep(0.1)
    return result


def get(url):
    """The body of a 200 answer; None while there is none."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.read().decode()
    except OSError:
        return None


class _OnePprof(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(PPROF.read_bytes())

    def log_message(self, *_):
        pass


class _Cgroup:
    """What a kubelet makes for a container, in the hierarchy that agents look at first."""

    def __init__(self, pod_uid, container_id):
        pids = pathlib.Path("/sys/fs/cgroup/pids")
        mount = pids if pids.is_dir() else pathlib.Path("/sys/fs/cgroup")
        self._folders = [mount / f"ff-test-{os.getpid()}"]
        self._folders.append(self._folders[0] / f"pod{pod_uid}")
        self._folders.append(self._folders[1] / container_id)
        for folder in self._folders:
            folder.mkdir()
        self.procs = self._folders[-1] / "cgroup.procs"

    def remove(self):
        """Once nothing runs in it."""
        for folder in reversed(self._folders):
            wait_until(f"{folder} is empty", functools.partial(self._try_rmdir, folder))

    @staticmethod
    def _try_rmdir(folder):
        with contextlib.suppress(OSError):
            folder.rmdir()
            return True
        return False


class HostFleet:
    def __init__(self):
        self._ends = contextlib.ExitStack()
        self._processes = {}
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def close(self):
        self._ends.close()

    def kubectl(self, *arguments, stdin=""):
        return self._kubectl(arguments, stdin).stdout

    def warnings(self, *arguments, stdin=""):
        """What the API server has to say about it, in one line."""
        return " ".join(self._kubectl(arguments, stdin).stderr.split())

    def _kubectl(self, arguments, stdin):
        environment = {**os.environ, "KUBECONFIG": self.kubeconfig}
        result = subprocess.run([self.folder / "api/kubectl", *arguments], input=stdin, env=environment, text=True,
                                capture_output=True, check=False)
        if result.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {result.stderr}")
        return result

    def run(self, name, *argv, before=""):
        """Starts a program that ends with this object; its stdin stays open, its output is in the file `name`.log."""
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", f'{before} exec "$@"', "sh",
                                        *map(str, argv)], stdin=subprocess.PIPE, stdout=log, stderr=log)
        self._processes[name] = process
        self._ends.callback(self._end, process)

    def stop(self, name):
        self._end(self._processes[name])

    def run_prometheus(self):
        """Debian's, which scrapes the three programs and evaluates our rules."""
        prometheus = Prometheus(self.folder, self._ports.take(), [
            {"job_name": name, "static_configs": [{"targets": [url.removeprefix("http://")]}]} for name, url in self.urls.items()])
        self.run("prometheus", *prometheus.argv)
        wait_until("Prometheus is ready", prometheus.ready)
        return prometheus

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    @staticmethod
    def _end(process):
        process.terminate()
        process.stdin.close()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self):
        self.folder = pathlib.Path(self._ends.enter_context(tempfile.TemporaryDirectory(prefix="flamefleet-docs-")))
        self._start_api_server()
        ports = self._ports = Ports()  # they stay ours as long as it lives
        store, operator, agents, agent = (ports.take() for _ in range(4))
        self.urls = {name: f"http://127.0.0.1:{port}" for name, port in
                     (("store", store), ("operator", operator), ("agent", agent))}
        self.run("store", BIN / "flamefleet-store", f"--listen=127.0.0.1:{store}", f"--data={self.folder}/data")
        self.run("operator", BIN / "flamefleet-operator", "run", f"--kubeconfig={self.kubeconfig}",
                 f"--namespace={NAMESPACE}", "--image=flamefleet:test", f"--listen=127.0.0.1:{operator}",
                 "--debug-listen=", f"--agents-listen=127.0.0.1:{agents}")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _OnePprof)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self._ends.callback(server.server_close)
        self._ends.callback(server.shutdown)
        self.kubectl("apply", "-f", "-", stdin=OURS.format(store=self.urls["store"], pprof=server.server_port))
        self._start_burner()
        self._start_agent(agents, agent)

    def _start_api_server(self):
        server = subprocess.Popen([ROOT / "e2e/cluster", "apiserver", "--dir", self.folder / "api", "--stop-on-eof"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def end():
            server.stdin.close()
            server.stdout.close()
            server.wait(timeout=90)
        self._ends.callback(end)
        self.kubeconfig = server.stdout.readline().strip()
        if not self.kubeconfig:
            raise AssertionError("the API server did not start")
        self.kubectl("apply", "-k", str(ROOT / "crds"))
        self.kubectl("apply", "-f", "-", stdin=BASE)
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")

    def _start_burner(self):
        uid = self._object("pod", "burner", "demo")["metadata"]["uid"]
        container = secrets.token_hex(32)
        cgroup = _Cgroup(uid, container)
        self._ends.callback(cgroup.remove)
        self.run("burner", BIN / "burner", "split", before=f"echo 0 > {cgroup.procs};")
        self._run_pod("demo", "burner", "burn", container)

    def _run_pod(self, namespace, pod, container, container_id):
        """Says of a pod what the kubelet would say."""
        status = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
                  "conditions": [{"type": "Ready", "status": "True"}],
                  "containerStatuses": [{"name": container, "image": container, "imageID": container, "ready": True,
                                         "restartCount": 0, "containerID": f"containerd://{container_id}",
                                         "state": {"running": {}}}]}
        self.kubectl("patch", "pod", "-n", namespace, pod, "--subresource=status", "-p", json.dumps({"status": status}))

    def _object(self, kind, name, namespace=NAMESPACE):
        """The object as soon as it is there."""
        return json.loads(wait_until(f"{kind} {name} is made", lambda: self.kubectl(
            "get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")))

    def _make_agent_pod(self):
        """What the controller of DaemonSets would make."""
        daemon_set = self._object("daemonset", "flamefleet-agent-default")
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon_set["metadata"]["name"],
                 "uid": daemon_set["metadata"]["uid"], "controller": True}
        self.kubectl("create", "-f", "-", stdin=json.dumps({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "agent", "namespace": NAMESPACE, "ownerReferences": [owner],
                         "labels": daemon_set["spec"]["template"]["metadata"]["labels"]},
            "spec": {"nodeName": NODE, "serviceAccountName": "flamefleet-agent",
                     "containers": [{"name": "agent", "image": "flamefleet"}]}}))
        self._run_pod(NAMESPACE, "agent", "agent", secrets.token_hex(32))

    def _start_agent(self, operator_port, port):
        self._make_agent_pod()
        trust = self._object("configmap", "flamefleet-operator-trust")
        (self.folder / "ca.crt").write_text(trust["data"]["ca.crt"])
        (self.folder / "token").write_text(self.kubectl(
            "create", "token", "flamefleet-agent", "-n", NAMESPACE, "--audience=flamefleet-operator",
            "--bound-object-kind=Pod", "--bound-object-name=agent"))
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost {OPERATOR_HOST}\n")
        self.run("agent", "unshare", "--mount", "sh", "-c",
                 f'mount --bind {self.folder}/hosts /etc/hosts && exec "$@"', "sh",
                 BIN / "flamefleet-agent", "run", f"--operator={OPERATOR_HOST}:{operator_port}", f"--node={NODE}",
                 "--pool=default", "--pod=agent", f"--operator-trust={self.folder}/ca.crt",
                 f"--operator-token={self.folder}/token", f"--listen=127.0.0.1:{port}", f"--spool={self.folder}/spool")
