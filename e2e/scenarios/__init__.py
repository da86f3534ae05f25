# SPDX-License-Identifier: Apache-2.0
"""Scenarios on the real cluster: `ctest -L cluster`, or one by hand on a running cluster:
`cd e2e && python3 -m unittest -v scenarios.test_profiles`."""
