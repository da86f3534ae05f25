# SPDX-License-Identifier: Apache-2.0
"""Our image, built by buildah: the same digest twice, labels, any user. It needs no cluster."""

import json
import os
import re
import tempfile
import unittest

from clusterlib import images, paths
from clusterlib.shell import run

BASE = "localhost/flamefleet-runtime:test"
IMAGE = "localhost/flamefleet-image:test"
SOME_USER = "1000620000:0"  # what OpenShift gives: a high number, and the group 0


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        images.stage_programs()
        images.ensure_base()
        cls.enterClassContext(images.building())
        cls.addClassCleanup(images.buildah, "rmi", "--force", IMAGE, check=False)
        # The packages, once, and kept for the cluster's image; then what is ours, twice, without what buildah remembers.
        images.build_flamefleet(BASE, target="runtime")
        text = images.DOCKERFILE.read_text()
        stage = re.search(r"^FROM runtime AS prebuilt\n.*?\n\n", text, re.MULTILINE | re.DOTALL)[0]
        with tempfile.NamedTemporaryFile("w", suffix=".Dockerfile") as dockerfile:
            dockerfile.write(stage.replace("FROM runtime", f"FROM {BASE}"))
            dockerfile.flush()
            cls.digests = []
            for second in (1, 2):
                for program in images.PROGRAMS:
                    os.utime(images.STAGING / program, (second, second))
                images.build_flamefleet(IMAGE, dockerfile=dockerfile.name, layers=False)
                cls.digests.append(cls.inspect()["FromImageDigest"])

    @staticmethod
    def inspect():
        return json.loads(images.buildah("inspect", "--type", "image", IMAGE))

    def test_two_builds_have_one_digest(self):
        self.assertRegex(self.digests[0], "^sha256:")
        self.assertEqual(self.digests[0], self.digests[1])

    def test_labels_say_what_it_is(self):
        config = self.inspect()["OCIv1"]["config"]
        version = run(paths.REPOSITORY / "tools" / "version").strip()
        labels = {name.removeprefix("org.opencontainers.image."): text for name, text in config["Labels"].items()}
        self.assertEqual(labels["version"], version)
        self.assertEqual((labels["title"], labels["licenses"]), ("flamefleet", "Apache-2.0"))
        self.assertEqual(config["User"], "65532:65532")

    def in_container(self, *argv):
        container = images.buildah("from", "--pull-never", IMAGE).strip()
        self.addCleanup(images.buildah, "rm", container)
        return images.buildah("run", "--isolation", "chroot", "--user", SOME_USER, container, "--", *argv)

    def test_each_program_runs_as_any_user(self):
        version = run(paths.REPOSITORY / "tools" / "version").strip()
        for program in ("flamefleet-operator", "flamefleet-agent", "flamefleet-store"):
            self.assertEqual(self.in_container(f"/usr/bin/{program}", "--version").split(), [program, version])

    def test_bill_of_materials_names_each_package(self):
        listed = self.in_container("dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}\\n")
        bill = json.loads(run(paths.REPOSITORY / "tools" / "sbom", input=listed))
        own, *packages = bill["packages"]
        self.assertEqual([(one["name"], one["versionInfo"]) for one in packages],
                         [tuple(line.split()[:2]) for line in listed.splitlines()])
        wanted = run(paths.REPOSITORY / "tools" / "debian-packages", "run").split()
        self.assertLessEqual(set(wanted), {one["name"] for one in packages})
        identities = [one["SPDXID"] for one in packages]
        self.assertEqual(len(identities), len(set(identities)))
        self.assertEqual({link["relatedSpdxElement"] for link in bill["relationships"]}, {own["SPDXID"], *identities})
