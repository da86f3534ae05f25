# SPDX-License-Identifier: Apache-2.0
"""Keys, certificates and kubeconfig files, made with the openssl command."""

import base64
import json

from .shell import run

DAYS = 365
# The system's openssl.cnf would add CA:TRUE to every certificate.
_CONFIG = """[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign, digitalSignature
subjectKeyIdentifier = hash
[leaf]
basicConstraints = CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
"""


class Authority:
    """A certificate authority in a folder: ca.crt, ca.key, and NAME.crt with NAME.key for each one issued."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._config = folder / "openssl.cnf"
        self._config.write_text(_CONFIG)
        self._request("ca", "/CN=flamefleet-cluster-ca", "ca")

    def file(self, name):
        return self._folder / name

    def issue(self, name, common_name, organisation="", addresses=()):
        """A certificate for client and server use; `addresses` like DNS:localhost or IP:127.0.0.1."""
        subject = (f"/O={organisation}" if organisation else "") + f"/CN={common_name}"
        extra = ["-addext", "subjectAltName=" + ",".join(addresses)] if addresses else []
        self._request(name, subject, "leaf", "-CA", self.file("ca.crt"), "-CAkey", self.file("ca.key"), *extra)

    def signing_key(self, name):
        """A bare key pair, NAME.key and NAME.pub, for service account tokens."""
        run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.file(f"{name}.key"))
        run("openssl", "ec", "-in", self.file(f"{name}.key"), "-pubout", "-out", self.file(f"{name}.pub"))

    def kubeconfig(self, name, server, user):
        """Writes a kubeconfig, complete in itself, for the certificate issued as `user`."""
        def data(file):
            return base64.b64encode(self.file(file).read_bytes()).decode()

        path = self.file(f"{name}.kubeconfig")
        # JSON is YAML; every reader of kubeconfig files takes it.
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "flamefleet",
            "clusters": [{"name": "flamefleet",
                          "cluster": {"server": server, "certificate-authority-data": data("ca.crt")}}],
            "users": [{"name": user, "user": {"client-certificate-data": data(f"{user}.crt"),
                                              "client-key-data": data(f"{user}.key")}}],
            "contexts": [{"name": "flamefleet", "context": {"cluster": "flamefleet", "user": user}}],
        }, indent=1) + "\n")
        path.chmod(0o600)
        return path

    def _request(self, name, subject, section, *extra):
        run("openssl", "req", "-x509", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-sha256", "-days", DAYS, "-config", self._config, "-extensions", section, "-subj", subject,
            "-keyout", self.file(f"{name}.key"), "-out", self.file(f"{name}.crt"), *extra)
