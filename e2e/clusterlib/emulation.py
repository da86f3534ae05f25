# SPDX-License-Identifier: Apache-2.0
"""Programs of arm64 run here, by Debian's qemu-user-static, for as long as somebody needs it."""

import contextlib
from pathlib import Path

from .progress import Failure

QEMU = Path("/usr/bin/qemu-aarch64-static")
_KERNEL = Path("/proc/sys/fs/binfmt_misc")
_NAME = "flamefleet-arm64"
# An ELF file of 64 bits, little endian, a program (2) or a shared one (3), for machine 0xb7.
_MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
_OPEN_NOW = "F"  # the kernel keeps the emulator open, so that it is there in a chroot, too


@contextlib.contextmanager
def arm64():
    """Everybody on this machine can run them meanwhile."""
    if not QEMU.exists():
        raise Failure(f"{QEMU} does not exist: run `make deps` (package qemu-user-static)")
    if not (_KERNEL / "register").exists():
        raise Failure(f"{_KERNEL} is not mounted: mount -t binfmt_misc none {_KERNEL}")
    entry = _KERNEL / _NAME
    if entry.exists():  # of one that was killed
        entry.write_text("-1")
    (_KERNEL / "register").write_text(f":{_NAME}:M::{_MAGIC}:{_MASK}:{QEMU}:{_OPEN_NOW}")
    try:
        yield
    finally:
        entry.write_text("-1")
