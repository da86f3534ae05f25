# SPDX-License-Identifier: Apache-2.0
"""A real two-node Kubernetes cluster on this machine. `e2e/cluster --help` is its command line."""
