# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboards beside this file, which `make docs-update` writes. What they show is the table below; import
the JSON files, or let Grafana's sidecar or operator load them."""

import json

WIDTH, HEIGHT = 8, 7  # of a panel; a row has 24 columns
RATE = "[$__rate_interval]"
# Instances of one program, as chosen at the top of the dashboard.
CHOSEN = 'instance=~"$instance"'


def rate(metric, by="", matchers=""):
    by = f" by ({by})" if by else ""
    return f"sum{by} (rate({metric}{{{matchers}}}{RATE}))" if matchers else f"sum{by} (rate({metric}{RATE}))"


def quantile(q, metric, by="", matchers=""):
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({q}, {rate(metric + '_bucket', labels, matchers)})"


# (title, unit, description, {legend: expression})
FLEET = [
    ("Objects that are not Ready", "short", "Targets, backends and pools, by the status of Ready.",
     {"{{kind}} {{ready}}": 'sum by (kind, ready) (flamefleet_operator_objects{ready!="True"})'}),
    ("Pods that want profiles", "short", "By what becomes of them, as the statuses count them.",
     {"{{state}}": "sum by (state) (flamefleet_operator_pods)"}),
    ("Agents connected", "short", "Streams at the operator, and what agents say of themselves.",
     {"at the operator": "sum(flamefleet_operator_agents_connected)",
      "by the agents": "sum(flamefleet_agent_control_connected)"}),
    ("Profiles delivered", "cps", "Acknowledged by backends.",
     {"delivered": rate("flamefleet_agent_profiles_delivered_total")}),
    ("Profiles lost", "cps", "By reason; docs/reasons.md explains each.",
     {"{{reason}}": rate("flamefleet_agent_profiles_dropped_total", "reason")}),
    ("Profiles waiting", "short", "On all nodes, for a backend that is away or slow.",
     {"profiles": "sum(flamefleet_agent_profiles_waiting)"}),
    ("CPU samples", "cps", "Taken, and lost on the way to a profile.",
     {"taken": rate("flamefleet_agent_samples_total"),
      "lost: {{reason}}": rate("flamefleet_agent_samples_dropped_total", "reason")}),
    ("Stacks that are whole", "percentunit", "Of the user stacks, the share that reached the outermost frame.",
     {"whole": rate("flamefleet_agent_user_stacks_total", matchers='end="complete"') + " / "
               + rate("flamefleet_agent_user_stacks_total", matchers='end!="no_user_stack"')}),
    ("Pulls of pprof endpoints", "cps", "By result.", {"{{result}}": rate("flamefleet_agent_scrapes_total", "result")}),
]
AGENT = [
    ("Samples", "cps", "Taken from the kernel's ring.",
     {"{{instance}}": rate("flamefleet_agent_samples_total", "instance", CHOSEN)}),
    ("Samples dropped", "cps", "container_pending: of containers that the agent did not know yet, wanted or not.",
     {"{{instance}} {{reason}}": rate("flamefleet_agent_samples_dropped_total", "instance, reason", CHOSEN)}),
    ("How stacks end", "cps", "complete: at the outermost frame.",
     {"{{end}}": rate("flamefleet_agent_user_stacks_total", "end", CHOSEN)}),
    ("Unwind tables", "bytes", "Kernel memory; counts in the container's limit, as that of the BPF maps does.",
     {"{{instance}} tables": f"flamefleet_agent_unwind_table_bytes{{{CHOSEN}}}",
      "{{instance}} maps": f"flamefleet_agent_bpf_map_bytes{{{CHOSEN}}}"}),
    ("Files without a table", "cps", "Their code is unwound by frame pointers only.",
     {"{{reason}}": rate("flamefleet_agent_unwind_files_without_table_total", "reason", CHOSEN)}),
    ("Processes unwound by tables", "short", "",
     {"{{instance}}": f"flamefleet_agent_unwind_processes{{{CHOSEN}}}"}),
    ("Symbol cache", "bytes", "", {"{{instance}}": f"flamefleet_agent_symbol_cache_bytes{{{CHOSEN}}}"}),
    ("Names that could not be read", "cps", "Of processes, files and samples.",
     {"processes": rate("flamefleet_agent_processes_unreadable_total", matchers=CHOSEN),
      "files": rate("flamefleet_agent_files_unopened_total", matchers=CHOSEN),
      "samples": rate("flamefleet_agent_samples_unnamed_total", matchers=CHOSEN)}),
    ("CPU", "short", "By part, in cores; bpf is the sampling program in the kernel.",
     {"{{instance}} {{part}}": rate("flamefleet_agent_cpu_seconds_total", "instance, part", CHOSEN),
      "{{instance}} budget": f"flamefleet_agent_cpu_budget_cores{{{CHOSEN}}}"}),
    ("Sampling frequency", "hertz", "Lower than asked for while the CPU budget limits it.",
     {"{{instance}}": f"flamefleet_agent_sampling_frequency_hertz{{{CHOSEN}}}"}),
    ("Memory", "bytes", "Of the agent's cgroup, and its limit (0: none).",
     {"{{instance}} used": f"flamefleet_agent_memory_used_bytes{{{CHOSEN}}}",
      "{{instance}} limit": f"flamefleet_agent_memory_limit_bytes{{{CHOSEN}}}"}),
    ("Pull jobs", "short", "", {"{{instance}}": f"flamefleet_agent_scrape_jobs{{{CHOSEN}}}"}),
    ("Stream to the operator", "short", "1 while it is up.",
     {"{{instance}}": f"flamefleet_agent_control_connected{{{CHOSEN}}}"}),
]
DELIVERY = [
    ("Produced, delivered, lost", "cps", "produced + recovered + split = delivered + lost + waiting.",
     {"produced": rate("flamefleet_agent_profiles_produced_total", matchers=CHOSEN),
      "recovered": rate("flamefleet_agent_profiles_recovered_total", matchers=CHOSEN),
      "split": rate("flamefleet_agent_profiles_split_total", matchers=CHOSEN),
      "delivered": rate("flamefleet_agent_profiles_delivered_total", matchers=CHOSEN),
      "lost": rate("flamefleet_agent_profiles_dropped_total", matchers=CHOSEN)}),
    ("Lost by reason", "cps", "docs/reasons.md explains each.",
     {"{{reason}}": rate("flamefleet_agent_profiles_dropped_total", "reason", CHOSEN)}),
    ("Failed pushes", "cps", "They will be tried again.",
     {"{{instance}}": rate("flamefleet_agent_push_retries_total", "instance", CHOSEN)}),
    ("Backlog", "short", "Profiles that wait or are being sent.",
     {"{{instance}}": f"flamefleet_agent_profiles_waiting{{{CHOSEN}}}"}),
    ("Backlog in bytes", "bytes", "", {"{{instance}}": f"flamefleet_agent_waiting_bytes{{{CHOSEN}}}"}),
    ("Bytes delivered", "Bps", "",
     {"{{instance}}": rate("flamefleet_agent_delivered_bytes_total", "instance", CHOSEN)}),
    ("Time of a push", "s", "Until the backend answered.",
     {"median": quantile(0.5, "flamefleet_agent_push_duration_seconds", matchers=CHOSEN),
      "99 %": quantile(0.99, "flamefleet_agent_push_duration_seconds", matchers=CHOSEN)}),
]
NAME = 'name="operator"'
OPERATOR = [
    ("Leader", "short", "1 for the one that leads.",
     {"{{instance}}": 'leader_election_master_status{name="flamefleet-operator"}'}),
    ("Certificate", "s", "Time until the end of the one that agents are shown; it is renewed 30 days before.",
     {"left": "max(flamefleet_operator_certificate_expiry_timestamp_seconds) - time()"}),
    ("Objects in the cache", "short", "", {"{{kind}}": "max by (kind) (flamefleet_operator_cached_objects)"}),
    ("Work queue", "short", "Keys that wait.", {"{{instance}}": f"workqueue_depth{{{NAME}}}"}),
    ("Time in the queue", "s", "From when a key is due to when it is taken, 99 %.",
     {"99 %": quantile(0.99, "workqueue_queue_duration_seconds", matchers=NAME)}),
    ("Time of a reconcile", "s", "99 %.",
     {"{{controller}}": quantile(0.99, "controller_runtime_reconcile_time_seconds", "controller",
                                 'controller=~"node|target|backend|pool"')}),
    ("Writes of objects", "cps", "What became of each object that the operator owns.",
     {"{{result}}": rate("flamefleet_operator_object_writes_total", "result")}),
    ("Writes of status", "cps", "postponed: numbers alone are written every ten seconds at most.",
     {"{{result}}": rate("flamefleet_operator_status_writes_total", "result")}),
    ("Events", "cps", "", {"{{result}}": rate("flamefleet_operator_events_total", "result")}),
    ("Lists and watches", "cps", "Failures are tried again.",
     {"lists": rate("flamefleet_operator_lists_total"), "watches": rate("flamefleet_operator_watches_total"),
      "failures {{kind}}": rate("flamefleet_operator_list_watch_failures_total", "kind")}),
    ("Assignments sent", "cps", "", {"{{kind}}": rate("flamefleet_operator_assignments_sent_total", "kind")}),
    ("Refused agents", "cps", "docs/security.md explains each reason.",
     {"{{reason}}": rate("flamefleet_operator_agents_refused_total", "reason")}),
    ("Token checks", "cps", "By who answered.",
     {"{{answer}}": rate("flamefleet_operator_token_checks_total", "answer")}),
]
STORE = [
    ("Profiles stored", "cps", "",
     {"stored": rate("flamefleet_store_profiles_stored_total", matchers=CHOSEN),
      "stored already": rate("flamefleet_store_profiles_duplicate_total", matchers=CHOSEN)}),
    ("Refused", "cps", "The client was told.",
     {"{{reason}}": rate("flamefleet_store_profiles_refused_total", "reason", CHOSEN)}),
    ("Requests", "cps", "", {"{{route}} {{code}}": rate("flamefleet_store_requests_total", "route, code", CHOSEN)}),
    ("Disk", "bytes", "All days.", {"{{instance}}": f"flamefleet_store_disk_bytes{{{CHOSEN}}}"}),
    ("Days kept", "short", "One database each.", {"{{instance}}": f"flamefleet_store_databases{{{CHOSEN}}}"}),
    ("Time of a commit", "s", "Sync to disk included.",
     {"median": quantile(0.5, "flamefleet_store_commit_seconds", matchers=CHOSEN),
      "99 %": quantile(0.99, "flamefleet_store_commit_seconds", matchers=CHOSEN)}),
    ("Damage", "cps", "Of the disk: none should ever be.",
     {"commits": rate("flamefleet_store_commit_errors_total", matchers=CHOSEN),
      "databases": rate("flamefleet_store_databases_damaged_total", matchers=CHOSEN),
      "profiles": rate("flamefleet_store_profiles_damaged_total", matchers=CHOSEN)}),
    ("Databases removed", "cps", "By age, or because all took more than --max-size.",
     {"{{reason}}": rate("flamefleet_store_databases_removed_total", "reason", CHOSEN)}),
]
# file: (title, panels, a metric that each instance to choose from has)
DASHBOARDS = {
    "fleet": ("Fleet", FLEET, None),
    "agent": ("Node agents", AGENT, "flamefleet_agent_control_connected"),
    "delivery": ("Delivery to backends", DELIVERY, "flamefleet_agent_control_connected"),
    "operator": ("Operator", OPERATOR, None),
    "store": ("Store", STORE, "flamefleet_store_databases"),
}


def panel(number, title, unit, description, queries):
    datasource = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "id": number + 1, "type": "timeseries", "title": title, "description": description, "datasource": datasource,
        "gridPos": {"w": WIDTH, "h": HEIGHT, "x": number * WIDTH % 24, "y": number * WIDTH // 24 * HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [{"refId": chr(ord("A") + index), "datasource": datasource, "expr": expression,
                     "legendFormat": legend}
                    for index, (legend, expression) in enumerate(queries.items())],
    }


def dashboard(name, title, panels, instances):
    variables = [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}]
    if instances:
        variables.append({"name": "instance", "type": "query", "label": "Instance", "includeAll": True, "multi": True,
                          "allValue": ".*", "current": {"text": "All", "value": "$__all"}, "refresh": 2,
                          "datasource": {"type": "prometheus", "uid": "${datasource}"},
                          "query": f"label_values({instances}, instance)"})
    return {
        "uid": f"flamefleet-{name}", "title": f"Flamefleet / {title}", "tags": ["flamefleet"], "schemaVersion": 39,
        "editable": True, "refresh": "30s", "time": {"from": "now-3h", "to": "now"}, "timezone": "browser",
        "templating": {"list": variables},
        "panels": [panel(number, *parts) for number, parts in enumerate(panels)],
    }


def files():
    """Name -> content."""
    return {f"{name}.json": json.dumps(dashboard(name, *parts), indent=1) + "\n" for name, parts in DASHBOARDS.items()}
