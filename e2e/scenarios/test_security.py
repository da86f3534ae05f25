# SPDX-License-Identifier: Apache-2.0
"""Who gets what from the operator: asked by curl, with tokens that the cluster's own API server signs."""

import base64
import http.client
import json
import re
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from clusterlib import paths
from clusterlib.fleet import NAMESPACE, STORE_PORT, STORE_READER, STORE_SERVICE
from scenarios.support import Scenario

HOST = f"flamefleet-operator.{NAMESPACE}.svc"
AUDIENCE = "flamefleet-operator"
ACCOUNT = "flamefleet-agent"
# curl's exit code when the stream ends before it has looked at the headers that it has received: a refusal is nothing but
# headers, and the end of the stream comes with them.
CURL_LOST_THE_ANSWER = 92
ATTEMPTS = 10
ANSWER_SECONDS = 20
# The kubelet brings a changed Secret to a pod within its own interval, a minute and a half, and a cache beside it.
KUBELET_SECONDS = 300
# Of google.rpc.Code
OK, PERMISSION_DENIED, UNAUTHENTICATED = 0, 7, 16


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def hello(node):
    """A gRPC frame with an AgentMessage{hello{node, pool: "default"}}."""
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data
    message = field(1, field(1, node.encode()) + field(2, b"default"))
    return b"\0" + len(message).to_bytes(4, "big") + message


class Security(Scenario):
    def setUp(self):
        super().setUp()
        self.address = self.kubectl.get("service", "-n", NAMESPACE, "flamefleet-operator")["spec"]["clusterIP"]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.authority = Path(folder.name, "ca.crt")
        self.authority.write_text(
            self.kubectl.get("configmap", "-n", NAMESPACE, "flamefleet-operator-trust")["data"]["ca.crt"])

    def agents(self):
        """The agents' pods, by node."""
        pods = self.kubectl.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=agent")["items"]
        return {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in pods
                if "deletionTimestamp" not in pod["metadata"]}

    def token(self, pod=None, audience=AUDIENCE, account=ACCOUNT):
        bound = ["--bound-object-kind=Pod", f"--bound-object-name={pod}"] if pod else []
        return self.kubectl("create", "token", account, "-n", NAMESPACE, f"--audience={audience}", *bound).strip()

    def expired(self, token):
        """The same token, but of yesterday, signed with the cluster's own key."""
        head, claims, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(claims + "=="))
        for time_claim in ("iat", "nbf", "exp"):
            claims[time_claim] -= 86400
        signed = f"{head}.{base64url(json.dumps(claims).encode())}"
        key = paths.state_dir() / "pki" / "service-account.key"
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=signed.encode(),
                                   capture_output=True, check=True).stdout
        return f"{signed}.{base64url(signature)}"

    def connect(self, node, token=None, url=f"https://{HOST}:9443", http="--http2"):
        """Says Hello as `node`; curl's result, the gRPC status (None: there was none) and what was answered."""
        headers = ["content-type: application/grpc", "te: trailers"]
        if token is not None:
            headers.append(f"authorization: Bearer {token}")
        command = ["curl", "-sS", http, "--cacert", self.authority, "--resolve", f"{HOST}:9443:{self.address}",
                   "--max-time", str(ANSWER_SECONDS), "-D", "/dev/stderr", "--data-binary", "@-",
                   *[part for header in headers for part in ("-H", header)],
                   f"{url}/flamefleet.fleet.v1alpha1.FleetControl/Connect"]
        for _ in range(ATTEMPTS):
            result = subprocess.run(command, input=hello(node), capture_output=True, check=False)
            if result.returncode != CURL_LOST_THE_ANSWER:
                break
        status = re.search(rb"grpc-status: (\d+)", result.stderr)
        return result.returncode, int(status[1]) if status else None, result.stdout

    def metric(self, series):
        with urllib.request.urlopen(f"http://{self.address}:8081/metrics", timeout=ANSWER_SECONDS) as answer:
            metrics = answer.read().decode()
        return float(re.search(rf"^{re.escape(series)} (\S+)", metrics, re.MULTILINE)[1])

    def refused(self, reason):
        return self.metric(f'flamefleet_operator_agents_refused_total{{reason="{reason}"}}')

    def assert_refused(self, reason, status, node, token=None):
        before = self.refused(reason)
        code, answered, data = self.connect(node, token)
        self.assertEqual((code, answered, data), (0, status, b""), reason)
        self.assertGreater(self.refused(reason), before)

    def test_the_account_of_the_agents_may_only_ask_about_itself(self):
        account = f"--as=system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
        groups = ["--as-group=system:serviceaccounts", "--as-group=system:authenticated"]
        listed = self.kubectl("auth", "can-i", "--list", "-n", NAMESPACE, account, *groups)
        resources = [line.split()[0] for line in listed.splitlines()[1:] if not line.startswith(" ")]
        self.assertEqual(sorted(resources), ["selfsubjectaccessreviews.authorization.k8s.io",
                                             "selfsubjectreviews.authentication.k8s.io",
                                             "selfsubjectrulesreviews.authorization.k8s.io"], listed)
        for pod in self.agents().values():
            spec = self.kubectl.get("pod", "-n", NAMESPACE, pod)["spec"]
            sources = [source for volume in spec["volumes"] for source in volume.get("projected", {}).get("sources", [])
                       if "serviceAccountToken" in source]
            self.assertEqual([s["serviceAccountToken"]["audience"] for s in sources], [AUDIENCE])

    def test_a_token_opens_the_assignment_of_its_own_node_only(self):
        agents = self.agents()
        self.assertEqual(len(agents), 2, agents)
        one, two = sorted(agents)
        profiled = {node: [pod["metadata"]["name"].encode() for pod in self.pods("targeted") + self.pods("annotated")
                           if pod["spec"]["nodeName"] == node] for node in agents}
        for node, other in ((one, two), (two, one)):
            token = self.token(agents[node])
            self.assert_refused("NodeMismatch", PERMISSION_DENIED, other, token)
            code, status, data = self.connect(node, token)
            self.assertEqual((code, status), (0, OK))
            self.assertEqual([name for name in profiled[node] if name not in data], [])
            self.assertEqual([name for name in profiled[other] if name in data], [])
        # The agents, whose streams were taken over, come back.
        self.eventually("targets are profiled", lambda: self.fleet.condition("profilingtarget", "targeted", "shop"))

    def test_whoever_is_no_agent_is_refused_with_a_counted_reason(self):
        node, pod = sorted(self.agents().items())[0]
        good = self.token(pod)
        self.assert_refused("NoToken", UNAUTHENTICATED, node)
        self.assert_refused("MalformedToken", UNAUTHENTICATED, node, "garbage")
        self.assert_refused("WrongAudience", UNAUTHENTICATED, node,
                            self.token(pod, audience="https://kubernetes.default.svc"))
        self.assert_refused("TokenExpired", UNAUTHENTICATED, node, self.expired(good))
        head, claims, signature = good.split(".")
        forged = signature[:20] + ("A" if signature[20] != "A" else "B") + signature[21:]
        self.assert_refused("TokenRefused", UNAUTHENTICATED, node, f"{head}.{claims}.{forged}")
        self.assert_refused("NoNode", PERMISSION_DENIED, node, self.token())
        self.assert_refused("WrongAccount", PERMISSION_DENIED, node, self.token(account="flamefleet-operator"))

    def test_plain_text_is_refused(self):
        node, pod = sorted(self.agents().items())[0]
        code, status, data = self.connect(node, self.token(pod), url=f"http://{self.address}:9443",
                                          http="--http2-prior-knowledge")
        self.assertNotEqual(code, 0)
        self.assertEqual((status, data), (None, b""))

    def status_of(self, url, headers=None, data=None):
        """None: no answer of a server whose certificate is of the authority."""
        try:
            with self.store.open(url, headers=headers or {}, data=data) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except (OSError, http.client.HTTPException):
            return None

    def store_answers(self):
        return self.status_of(f"{self.store.url}/types", self.store.headers) == 200

    def test_the_store_gives_nothing_without_a_credential_and_takes_nothing_from_readers(self):
        url, reader = self.store.url, self.store.headers
        self.assertEqual(self.status_of(f"{url}/top"), 401)
        self.assertEqual(self.status_of(f"{url}/top", {"Authorization": "Bearer garbage"}), 401)
        self.assertEqual(self.status_of(f"{url}/types", reader), 200)
        self.assertEqual(self.status_of(f"{url}/ingest", reader, b"main 1"), 403)
        token = base64.b64decode(self.kubectl.get("secret", "-n", NAMESPACE, "flamefleet-stores")["data"]["default.token"])
        self.assertEqual(self.status_of(f"{url}/types", {"Authorization": f"Bearer {token.decode()}"}), 403)
        self.assertIsNone(self.status_of(url.replace("https:", "http:") + "/types", reader))
        # Its certificate is for its name.
        name = f"{STORE_SERVICE}.{NAMESPACE}.svc"
        curl = ["curl", "-sS", "--cacert", self.authority, "--max-time", str(ANSWER_SECONDS), "-o", "/dev/null", "-w",
                "%{http_code}", "--resolve", f"{name}:{STORE_PORT}:{url.split('/')[2].split(':')[0]}"]
        self.assertEqual(subprocess.run([*curl, f"https://{name}:{STORE_PORT}/healthz"], capture_output=True, text=True,
                                        check=True).stdout, "200")

    def test_who_may_forward_a_port_to_the_store_reads_without_a_password(self):
        forward = subprocess.Popen([self.kubectl.binary, "port-forward", "-n", NAMESPACE, f"service/{STORE_SERVICE}", ":4040"],
                                   env=self.kubectl.environment, stdout=subprocess.PIPE, text=True)
        self.addCleanup(forward.stdout.close)
        self.addCleanup(forward.wait)
        self.addCleanup(forward.terminate)
        port = re.search(r"127\.0\.0\.1:(\d+)", forward.stdout.readline())[1]
        self.assertEqual(self.status_of(f"http://127.0.0.1:{port}/types"), 200)
        self.assertEqual(self.status_of(f"http://127.0.0.1:{port}/ingest", data=b"main 1"), 403)

    def test_another_password_counts_without_a_restart(self):
        self.kubectl("patch", "secret", "-n", NAMESPACE, STORE_READER, "-p", '{"stringData": {"password": "of-our-own"}}')
        basic = {"Authorization": "Basic " + base64.b64encode(b"reader:of-our-own").decode()}
        self.eventually("the store has it", lambda: self.status_of(f"{self.store.url}/types", basic) == 200, KUBELET_SECONDS)
        self.assertEqual(self.status_of(f"{self.store.url}/types", self.store.headers), 401)
        type(self).store = self.fleet.store()

    def test_another_authority_takes_over_and_the_agents_come_back(self):
        before = self.authority.read_text()
        self.kubectl("delete", "secret", "-n", NAMESPACE, "flamefleet-operator-tls")

        def trusted():
            return self.kubectl.get("configmap", "-n", NAMESPACE, "flamefleet-operator-trust")["data"]["ca.crt"]
        self.eventually("there is another authority", lambda: trusted() != before)
        # A new pod of an agent mounts the new one at once, and so does the operator serve it.
        self.kubectl("delete", "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=agent")
        self.eventually("the agents are connected", lambda: self.metric("flamefleet_operator_agents_connected") == 2)
        type(self).store = self.fleet.store()
        self.eventually("the store has a certificate of it, too", self.store_answers, KUBELET_SECONDS)
        self.eventually("targets are profiled", lambda: self.fleet.condition("profilingtarget", "targeted", "shop"))
