# SPDX-License-Identifier: Apache-2.0
"""Brings up cluster, Flamefleet and sample workloads, and shows status and profiles."""

import textwrap

from .cluster import Cluster
from .fleet import NAMESPACE, STORE_SERVICE, Fleet
from .progress import Failure, say, step, wait_until
from .store import Store

NODES = 2
FORWARDED = Store("http://127.0.0.1:4040")
HOTTEST = 8  # functions shown per workload
PROFILES_SECONDS = 120
# (service name, profile type, what it is)
SHOWN = [
    ("annotated", "process_cpu", "C++, opted in by annotations, sampled by eBPF: burns 70 % and 30 % of its time"),
    ("targeted", "process_cpu", "the same program, opted in by a ProfilingTarget"),
    ("gopprof", "process_cpu", "Go, its CPU profile pulled from net/http/pprof"),
    ("gopprof", "memory:alloc_space", "the same, what it allocated"),
]


def main():
    cluster = Cluster()
    try:
        with cluster.locked():
            cluster.up(NODES)
            fleet = Fleet(cluster)
            fleet.install()
            fleet.apply_workloads()
        fleet.wait("the ProfilingTarget is ready", lambda: fleet.condition("profilingtarget", "targeted", "shop"))
        _show(fleet)
    except Failure as failure:
        say(f"demo: {failure}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _query(service, kind):
    return f'{kind}{{service_name="{service}"}}'


def _show(fleet):
    store = fleet.store()
    with step("waiting until every workload's profiles have arrived"):
        for service, kind, _ in SHOWN:
            query = _query(service, kind)
            wait_until(f"the store has {query}", lambda: store.download(query, "now-5m"), PROFILES_SECONDS,
                       fleet.describe)
    print("\n$ kubectl get profilingtargets,profilingbackends,agentpools -A")
    print(fleet.kubectl("get", "profilingtargets,profilingbackends,agentpools", "-A"), end="")
    for service, kind, what in SHOWN:
        print(f"\n{service}, {kind}: {what}")
        table = store.get("/top", query=_query(service, kind), limit=HOTTEST, **{"from": "now-5m"})
        print(textwrap.indent(table, "  "), end="")
        print(f"  go tool pprof '{FORWARDED.pprof_url(_query(service, kind), 'now-5m')}'")
    recorded = store.download('process_cpu{pod=~"private-.*"}', "now-5m")
    print("\nThe pod `private` was not opted in:",
          "YET IT WAS PROFILED, which is a bug" if recorded else "the store has nothing of it.")
    print("\nFlame graphs, comparison and diff in a browser, and the addresses above:"
          f"\n  kubectl -n {NAMESPACE} port-forward service/{STORE_SERVICE} 4040 &\n  {FORWARDED.url}/")
    print("\nTo look further:\n  eval \"$(e2e/cluster kubeconfig)\"\n  kubectl get profiling -A"
          "\n  kubectl describe profilingtarget -n shop targeted\n  kubectl get pods -A -o wide")
    print(f"  export KUBECONFIG={fleet.cluster.kubeconfig}    # for a kubectl of your own")
    print("To stop and remove everything:\n  make demo-down")
