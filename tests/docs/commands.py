# SPDX-License-Identifier: Apache-2.0
"""The command blocks of the pages that people follow word by word, in this order in one folder, and which of their
commands a test cannot run, and why."""

import re

PAGES = ["README.md", "docs/start.md", "docs/upgrade.md", "docs/alerts.md", "docs/backends.md",
         "docs/kubectl.md"]

# How a command begins -> why it is not run here.
IMAGE = "builds or publishes an image: the cluster tests build and load it"
NODES = "needs nodes: the cluster tests run docs/start.md, which has the same"
STORE = "needs a managed store: the cluster tests ask it"
FOREVER = "runs until it is stopped"
OPENSHIFT = "needs OpenShift"
NOT_RUN = {
    "make demo": NODES,
    "make test": "runs this test",
    "make local": FOREVER,
    "docker build": IMAGE,
    "docker push": IMAGE,
    "kubectl -n flamefleet-system rollout status": NODES,
    "kubectl -n flamefleet-system wait --for=delete job/flamefleet-starter": NODES,
    "kubectl wait --for=condition=Ready agentpool/default": NODES,
    "kubectl -n flamefleet-system port-forward": FOREVER,
    "kubectl flamefleet top": STORE,
    "kubectl flamefleet pprof": STORE,
    "flamefleet-store --data": FOREVER,
    "xdg-open": "opens a browser",
    "oc adm policy": OPENSHIFT,
    "kubectl delete profilingtargets": "deletion_test deletes everything, with the controllers that it takes",
    "kubectl delete --ignore-not-found -k": "deletion_test deletes everything, with the controllers that it takes",
}
# What a test has elsewhere: where the store is, and a terminal instead of a browser; and it keeps its backend.
INSTEAD = {"http://127.0.0.1:4040": "{store}", "-http=:": "-top", "kubectl replace": "kubectl replace --dry-run=server"}

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_HERE_DOCUMENT = re.compile(r"<< '(\w+)'$")


def blocks(text, language=""):
    return [body for found, body in _BLOCK.findall(text) if found == language]


def split(block):
    """The commands of a block: lines, with their here-documents."""
    lines = iter(block.splitlines())
    for line in lines:
        command = [line]
        if (end := _HERE_DOCUMENT.search(line)):
            for line in lines:
                command.append(line)
                if line == end[1]:
                    break
        if line.strip() and not command[0].startswith("#"):
            yield "\n".join(command)


def reason_not_to_run(command):
    return next((reason for start, reason in NOT_RUN.items() if command.startswith(start)), None)


def as_run(command, store):
    for what, instead in INSTEAD.items():
        command = command.replace(what, instead.format(store=store))
    return command
