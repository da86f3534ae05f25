#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Dockerfile compiles our programs where the packages of the group `build` are, and no others: here are those of all
groups, so that a header of another one would be missed by nobody.

usage: packages_test.py BUILD_DIRECTORY   (what ninja knows of it)
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def output(*command, check=True):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=check).stdout


def headers(build):
    """path -> an object of our programs, not of tests, that includes it; of the system's headers."""
    found, target = {}, ""
    for line in output("ninja", "-C", build, "-t", "deps").splitlines():
        if not line.startswith(" "):
            target = line.partition(":")[0]
        elif line.strip().startswith("/usr/") and not target.startswith("tests/"):
            found.setdefault(line.strip(), target)
    return found


def owners(paths):
    """path -> packages; one that was not installed by a package is not among them."""
    lines = (line.rpartition(": ") for line in output("dpkg", "-S", *paths, check=False).splitlines())
    return {path: {name.partition(":")[0] for name in names.split(", ")} for names, _, path in lines}


def brought(group):
    """The packages of a group, and of those that are installed here what they depend on."""
    depends = {}
    for line in output("dpkg-query", "-W", "-f", "${Package}\t${Provides}\t${Pre-Depends}, ${Depends}\n").splitlines():
        name, provides, needs = line.split("\t")
        of_package = depends.setdefault(name, set())
        of_package.update(re.findall(r"(?:^|[,|]) *([a-z0-9][a-z0-9.+-]+)", needs))
        for other in re.findall(r"(?:^|,) *([a-z0-9][a-z0-9.+-]+)", provides):
            depends.setdefault(other, set()).add(name)
    reached, waiting = set(), output(REPOSITORY / "tools" / "debian-packages", group).split()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += depends.get(name, ())
    return reached


class Packages(unittest.TestCase):
    def test_programs_include_headers_of_build_packages_only(self):
        included, build = headers(BUILD), brought("build")
        self.assertTrue(included)
        stray = {path: (names, included[path]) for path, names in owners(sorted(included)).items() if not names & build}
        self.assertEqual(stray, {}, "debian-packages.txt: want a package of these in the group `build`")


if __name__ == "__main__":
    BUILD = sys.argv.pop()
    unittest.main()
