# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus with our rules, and what our dashboards ask of it."""

import json
import urllib.error
import urllib.parse
import urllib.request

import yaml

from . import paths
from .progress import Failure

RULES = yaml.safe_load((paths.REPOSITORY / "config/prometheus/rules.yaml").read_text())["spec"]
DASHBOARDS = sorted((paths.REPOSITORY / "dashboards").glob("*.json"))
# What Grafana would put in.
VARIABLES = {"$__rate_interval": "1m", "$instance": ".*"}
ANSWER_SECONDS = 20


def queries():
    """(dashboard, panel, expression) of all that the dashboards ask."""
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield path.name, panel["title"], target["expr"]


class Prometheus:
    """Scrapes every two seconds and evaluates the rules as often, once somebody runs `argv`. All its files are in `folder`."""

    def __init__(self, folder, port, scrape_configs):
        config = {"global": {"scrape_interval": "2s", "evaluation_interval": "2s"}, "rule_files": ["rules.json"],
                  "scrape_configs": scrape_configs}
        (folder / "rules.json").write_text(json.dumps(RULES))  # JSON is YAML
        (folder / "prometheus.json").write_text(json.dumps(config))
        self.url = f"http://127.0.0.1:{port}"
        self.argv = ["prometheus", f"--config.file={folder}/prometheus.json", f"--storage.tsdb.path={folder}/tsdb",
                     f"--web.listen-address=127.0.0.1:{port}"]

    def ready(self):
        return self._get("/-/ready") is not None

    def query(self, expression):
        """The samples that it answers with."""
        for name, value in VARIABLES.items():
            expression = expression.replace(name, value)
        answer = self._get("/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        return json.loads(answer)["data"]["result"] if answer else []

    def evaluated_rules(self):
        """What it says of each rule; nothing until it has evaluated all."""
        groups = json.loads(self._get("/api/v1/rules") or "{}").get("data", {}).get("groups", [])
        rules = [rule for group in groups for rule in group["rules"]]
        return rules if all(rule["health"] != "unknown" for rule in rules) else []

    def alerts(self):
        """The names of those that are pending or firing."""
        found = json.loads(self._get("/api/v1/alerts") or "{}").get("data", {}).get("alerts", [])
        return {alert["labels"]["alertname"] for alert in found}

    def _get(self, path):
        """The body of a 200 answer; None while there is none. What it does not take is a failure."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=ANSWER_SECONDS) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            if error.code == 400:
                raise Failure(f"Prometheus does not take {path}: {error.read().decode()}") from None
            return None
        except OSError:
            return None
