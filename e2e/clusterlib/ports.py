# SPDX-License-Identifier: Apache-2.0
"""Free TCP ports for servers that must be told their port before they start."""

import fcntl
import os
import socket
from pathlib import Path

# Below the kernel's range for outgoing connections and below NodePorts, so only other servers can take one meanwhile.
FIRST_PORT, LAST_PORT = 20000, 29999
_LOCKS = Path("/run/lock/flamefleet-ports")


class Ports:
    """Ports that no other Ports object of this machine hands out while this one lives."""

    def __init__(self):
        self._locks = []
        self._next = FIRST_PORT + os.getpid() * 7 % (LAST_PORT - FIRST_PORT)

    def take(self):
        _LOCKS.mkdir(exist_ok=True)
        for _ in range(LAST_PORT - FIRST_PORT):
            port = self._next
            self._next = port + 1 if port < LAST_PORT else FIRST_PORT
            lock = open(_LOCKS / str(port), "w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            except OSError:
                lock.close()
                continue
            self._locks.append(lock)
            return port
        raise RuntimeError(f"no free TCP port between {FIRST_PORT} and {LAST_PORT}")
