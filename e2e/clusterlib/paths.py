# SPDX-License-Identifier: Apache-2.0
"""Where things are: the repository, the state of the cluster, and what is kept between clusters."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
E2E = REPOSITORY / "e2e"


def state_dir():
    """The one folder that holds everything of the running cluster. Removed by `down`."""
    return Path(os.environ.get("FLAMEFLEET_STATE", "/var/tmp/flamefleet-cluster")).absolute()


def cache_dir():
    """Outside the clone and safe to delete: binaries, base images and layers, each named by its inputs."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "flamefleet"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
