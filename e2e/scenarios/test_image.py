# SPDX-License-Identifier: Apache-2.0
"""Our image, built by buildah: the same digest twice, labels, any user, no shell. It needs no cluster."""

import json
import os
import tempfile
import unittest
from pathlib import Path

from clusterlib import images, paths
from clusterlib.shell import run

IMAGE = "localhost/flamefleet-image:test"
SOME_USER = "1000620000:0"  # what OpenShift gives: a high number, and the group 0
# As Debian's images have it, with other addresses.
SOURCES_OF_BASE = """\
Types: deb
# http://archive.example/debian/20250520T000000Z
URIs: http://newest.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
# http://archive.example/debian-security/20250520T000000Z
URIs: http://newest.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        images.stage_programs()
        base = images.ensure_base()
        cls.enterClassContext(images.building())
        cls.addClassCleanup(images.buildah, "rmi", "--force", IMAGE, check=False)
        cls.digests = []
        for second in (1, 2):  # from the base on, without what buildah remembers
            for program in images.PROGRAMS:
                os.utime(images.STAGING / program, (second, second))
            images.build_flamefleet(IMAGE, base, layers=False)
            cls.digests.append(cls.inspect()["FromImageDigest"])

    @staticmethod
    def inspect():
        return json.loads(images.buildah("inspect", "--type", "image", IMAGE))

    def test_two_builds_have_one_digest(self):
        self.assertRegex(self.digests[0], "^sha256:")
        self.assertEqual(self.digests[0], self.digests[1])

    def test_base_is_pinned_by_its_digest_and_packages_by_the_day_that_it_names(self):
        self.assertRegex(images.DOCKERFILE.read_text(), r"(?m)^ARG BASE=\S+@sha256:[0-9a-f]{64}$")
        with tempfile.TemporaryDirectory() as folder:
            sources = Path(folder) / "debian.sources"
            sources.write_text(SOURCES_OF_BASE)
            run(paths.REPOSITORY / "tools" / "debian-snapshot", sources)
            asked = run("apt-get", "-o", f"Dir::Etc::sourceparts={folder}", "-o", "Dir::Etc::sourcelist=/dev/null",
                        "-o", f"Dir::State::lists={folder}/lists", "--print-uris", "update")
        for path in ("debian/20250520T000000Z/dists/bookworm/", "debian/20250520T000000Z/dists/bookworm-updates/",
                     "debian-security/20250520T000000Z/dists/bookworm-security/"):
            self.assertIn(f"http://archive.example/{path}InRelease", asked)
        self.assertNotIn("newest.example", asked)

    def test_labels_say_what_it_is(self):
        config = self.inspect()["OCIv1"]["config"]
        version = run(paths.REPOSITORY / "tools" / "version").strip()
        labels = {name.removeprefix("org.opencontainers.image."): text for name, text in config["Labels"].items()}
        self.assertEqual(labels["version"], version)
        self.assertEqual((labels["title"], labels["licenses"]), ("flamefleet", "Apache-2.0"))
        self.assertEqual(config["User"], "65532:65532")

    def container(self):
        container = images.buildah("from", "--pull-never", IMAGE).strip()
        self.addCleanup(images.buildah, "rm", container)
        return container

    @staticmethod
    def run_in(container, *argv):
        return images.buildah("run", "--isolation", "chroot", "--user", SOME_USER, container, "--", *argv)

    def test_each_program_runs_as_any_user_and_without_a_shell(self):
        container = self.container()
        root = images.buildah("mount", container).strip()
        for shell in ("sh", "dash", "bash"):
            os.unlink(f"{root}/bin/{shell}")
        version = run(paths.REPOSITORY / "tools" / "version").strip()
        for program in ("flamefleet-operator", "flamefleet-agent", "flamefleet-store"):
            self.assertEqual(self.run_in(container, f"/usr/bin/{program}", "--version").split(), [program, version])

    def test_bill_of_materials_names_each_package(self):
        listed = self.run_in(self.container(), "dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}\\n")
        bill = json.loads(run(paths.REPOSITORY / "tools" / "sbom", input=listed))
        own, *packages = bill["packages"]
        self.assertEqual([(one["name"], one["versionInfo"]) for one in packages],
                         [tuple(line.split()[:2]) for line in listed.splitlines()])
        wanted = run(paths.REPOSITORY / "tools" / "debian-packages", "run").split()
        self.assertLessEqual(set(wanted), {one["name"] for one in packages})
        identities = [one["SPDXID"] for one in packages]
        self.assertEqual(len(identities), len(set(identities)))
        self.assertEqual({link["relatedSpdxElement"] for link in bill["relationships"]}, {own["SPDXID"], *identities})
