# SPDX-License-Identifier: Apache-2.0
"""The cluster tool itself, which every other scenario stands on."""

import os
import signal
import unittest

from clusterlib import cleanup
from clusterlib.cluster import Cluster


class ClusterTool(unittest.TestCase):
    def test_down_leaves_nothing_of_a_cluster_that_crashed(self):
        cluster = Cluster()
        with cluster.locked():
            cluster.down()
            cluster.up(node_count=2)
            self.assertNotEqual(cleanup.leftovers(cluster.state), [])
            for process in cluster.processes.all():
                os.kill(process.pid, signal.SIGKILL)
            cluster.down()
            self.assertEqual(cleanup.leftovers(cluster.state), [])
