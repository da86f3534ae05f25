# SPDX-License-Identifier: Apache-2.0
"""kubectl, as built for the cluster, against one kubeconfig."""

import json
import os

from .progress import Failure
from .shell import run

# Events go by themselves an hour after the last one; the others are no objects of their own.
_NOT_COUNTED = {"events", "events.events.k8s.io", "componentstatuses", "endpoints"}


def names_of_all_objects(kubectl):
    """(kind, namespace, name) of all objects of all kinds; `kubectl` runs it and returns its output."""
    kinds = kubectl("api-resources", "--verbs=list", "-o", "name").split()
    counted = ",".join(kind for kind in kinds if kind not in _NOT_COUNTED)
    objects = json.loads(kubectl("get", counted, "-A", "-o", "json", "--ignore-not-found"))["items"]
    return {(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in objects}


class Kubectl:
    def __init__(self, binaries, kubeconfig):
        self.binary = binaries / "kubectl"
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}

    def __call__(self, *argv, input=None, check=True):
        return run(self.binary, *argv, input=input, env=self.environment, check=check)

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
