# SPDX-License-Identifier: Apache-2.0
"""kubectl, as built for the cluster, against one kubeconfig."""

import json
import os

from .progress import Failure
from .shell import run


class Kubectl:
    def __init__(self, binaries, kubeconfig):
        self._binary = binaries / "kubectl"
        self._env = {**os.environ, "KUBECONFIG": str(kubeconfig)}

    def __call__(self, *argv, input=None, check=True):
        return run(self._binary, *argv, input=input, env=self._env, check=check)

    def get(self, *argv):
        """The object or list as Python data."""
        return json.loads(self("get", "-o", "json", *argv))

    def apply(self, documents):
        """Applies a list of objects."""
        self("apply", "-f", "-", input="\n---\n".join(json.dumps(d) for d in documents))

    def ready(self):
        """Whether the API server answers that it is ready."""
        try:
            return self("get", "--raw", "/readyz", "--request-timeout=2s").strip() == "ok"
        except Failure:
            return False
