# SPDX-License-Identifier: Apache-2.0
"""Gives the scenarios a new cluster with Flamefleet in it: the set-up of ctest's fixture `cluster`."""

import sys

from clusterlib.cluster import Cluster
from clusterlib.fleet import Fleet
from clusterlib.progress import Failure, say


def main():
    cluster = Cluster()
    try:
        with cluster.locked():
            if cluster.exists():
                say(f"-> the cluster in {cluster.state} (of `make demo`?) gives way to a new one for the tests")
                cluster.down()
            cluster.up(node_count=2)
            Fleet(cluster).install()
    except Failure as failure:
        say(f"scenarios: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
