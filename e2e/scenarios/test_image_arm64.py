# SPDX-License-Identifier: Apache-2.0
"""Our image for arm64, of the programs that `make image-arm64` cross-builds, with Debian's packages for it: what it says it is,
and each program runs in it under emulation. It needs no cluster."""

import json
import unittest

from clusterlib import emulation, images, paths
from clusterlib.progress import step
from clusterlib.shell import run

IMAGE = "localhost/flamefleet-image-arm64:test"
BUILT = paths.REPOSITORY / "build" / "arm64" / "bin"


class Arm64Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.enterClassContext(emulation.arm64())
        base = images.ensure_base("arm64")
        cls.enterClassContext(images.building())
        images.stage_programs(BUILT, strip="aarch64-linux-gnu-strip")
        cls.addClassCleanup(images.buildah, "rmi", "--force", IMAGE, check=False)
        with step(f"building {IMAGE}, its packages under emulation"):
            images.build_flamefleet(IMAGE, base, architecture="arm64")
        cls.container = images.buildah("from", "--pull-never", "--arch", "arm64", IMAGE).strip()
        cls.addClassCleanup(images.buildah, "rm", cls.container)

    def run_in(self, *argv):
        return images.buildah("run", "--isolation", "chroot", self.container, "--", *argv)

    def test_it_says_that_it_is_for_arm64(self):
        config = json.loads(images.buildah("inspect", "--type", "image", IMAGE))["OCIv1"]
        self.assertEqual((config["os"], config["architecture"]), ("linux", "arm64"))
        self.assertEqual(self.run_in("dpkg", "--print-architecture").strip(), "arm64")

    def test_each_program_is_of_arm64_and_runs(self):
        version = run(paths.REPOSITORY / "tools" / "version").strip()
        root = images.buildah("mount", self.container).strip()
        for program in images.PROGRAMS:
            self.assertRegex(run("readelf", "-h", f"{root}/usr/bin/{program}"), r"Machine: +AArch64")
            self.assertEqual(run("readelf", "-S", f"{root}/usr/bin/{program}").count(".debug_info"), 0, "it is stripped")
            if program != "flamefleet-parse":  # the agent's child, which takes its orders from a socket
                self.assertEqual(self.run_in(f"/usr/bin/{program}", "--version").split(), [program, version])
