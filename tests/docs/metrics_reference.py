# SPDX-License-Identifier: Apache-2.0
"""docs/metrics.md, made of what the programs answer to GET /metrics."""

import re
from dataclasses import dataclass, field

HEAD = """\
# Metrics

<!-- Made by `make docs-update` of what the programs expose; a test compares. Do not edit. -->
Each program answers `GET /metrics` in the Prometheus text format: the operator on port 8081 of the Service
`flamefleet-operator`, each agent on port 9090 of its pod, the store on port 4040
(a managed one on port 9090). Counters start at 0 for every label
value, so a rate is never missing; no label names a pod or a node. The operator's `controller_runtime_*`, `workqueue_*`,
`rest_client_*` and `leader_election_*` are named as those of other operators, so dashboards for these work.
"""
SECTIONS = [("operator", "Operator"), ("agent", "Agent"), ("store", "Store")]
_SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+$')
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_PARTS = ("_bucket", "_sum", "_count")  # of a histogram


@dataclass
class Metric:
    kind: str = ""
    help: str = ""
    labels: dict = field(default_factory=dict)  # name -> set of values


def parse(text):
    """name -> Metric of a text exposition."""
    metrics = {}
    for line in text.splitlines():
        if line.startswith(("# HELP ", "# TYPE ")):
            _, what, name, rest = line.split(" ", 3)
            setattr(metrics.setdefault(name, Metric()), "help" if what == "HELP" else "kind", rest)
        elif (sample := _SAMPLE.match(line)):
            name = sample[1]
            for part in _PARTS:
                if name not in metrics:
                    name = sample[1].removesuffix(part)
            for label, value in _LABEL.findall(sample[2] or ""):
                if label != "le":
                    metrics[name].labels.setdefault(label, set()).add(value)
        elif line:
            raise ValueError(f"not a line of the text format: {line}")
    return metrics


def _labels(name, metric):
    """Ours have few values and have all of them from the start; those of other conventions depend on what happens."""
    def values(label):
        if not name.startswith("flamefleet_"):
            return ""
        return ": " + ", ".join(sorted(metric.labels[label]))
    return "; ".join(f"`{label}`{values(label)}" for label in sorted(metric.labels))


def render(expositions):
    """The page, from program -> text."""
    page = [HEAD]
    for program, title in SECTIONS:
        page.append(f"## {title}\n| metric | type | labels | what |\n|---|---|---|---|")
        for name, metric in sorted(parse(expositions[program]).items()):
            what = metric.help.replace("|", "&#124;")
            page.append(f"| `{name}` | {metric.kind} | {_labels(name, metric)} | {what} |")
        page.append("")
    return "\n".join(page)


def names(page):
    """The names in the page, with those of the series of histograms."""
    found = set()
    for name, kind in re.findall(r"^\| `([a-zA-Z0-9_:]+)` \| (\w+) \|", page, re.MULTILINE):
        found.update([name + part for part in _PARTS] if kind == "histogram" else [name])
    return found


def used(expression):
    """The metrics of ours in a PromQL expression."""
    families = "flamefleet|controller_runtime|leader_election|process|rest_client|workqueue"
    return set(re.findall(rf"(?<![:\w])(?:{families})_\w+(?![\w:])", expression))
