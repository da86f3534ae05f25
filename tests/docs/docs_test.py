#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is made of other files is current, and every link of every page leads somewhere. FF_UPDATE_DOCS=1 writes what is
made."""

import json
import os
import pathlib
import re
import sys
import unittest
import urllib.parse

import crd_reference
import metrics_reference

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "dashboards"))
import generate as dashboards  # noqa: E402

UPDATE = os.environ.get("FF_UPDATE_DOCS")
NOT_OURS = {".git", ".cache", "build", "dist", "node_modules"}
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def pages():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        yield from (pathlib.Path(folder, name) for name in files if name.endswith(".md"))


def prose(path):
    """The page without its code blocks."""
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def links(path):
    return LINK.findall(re.sub(r"`[^`\n]*`", "code", prose(path)))


def anchors(path):
    """What code hosts make of the headings."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.add(next(name for name in [anchor, *(f"{anchor}-{n}" for n in range(1, 100))] if name not in found))
    return found


class DocsTest(unittest.TestCase):
    maxDiff = None

    def expect(self, path, text):
        if UPDATE:
            path.write_text(text)
        self.assertEqual(path.read_text() if path.exists() else "", text, f"{path} is not current: make docs-update")

    def test_reference_of_kinds_is_that_of_the_crds(self):
        self.expect(ROOT / "docs/crds.md", crd_reference.render(ROOT / "crds"))

    def test_dashboards_are_those_of_the_generator(self):
        for name, text in dashboards.files().items():
            self.expect(ROOT / "dashboards" / name, text)
        self.assertEqual({path.name for path in (ROOT / "dashboards").glob("*.json")}, set(dashboards.files()))

    def test_every_link_leads_somewhere(self):
        for page in pages():
            for target in links(page):
                file, _, anchor = target.partition("#")
                if urllib.parse.urlparse(file).scheme:
                    continue  # of others: a test has no internet
                path = (page.parent / file).resolve() if file else page
                with self.subTest(f"{page.relative_to(ROOT)}: {target}"):
                    self.assertTrue(path.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(path))

    def test_every_file_that_a_page_names_exists(self):
        folders = "|".join(path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in NOT_OURS)
        for page in pages():
            for name in re.findall(rf"`((?:{folders})/[\w./-]*)`", prose(page)):
                with self.subTest(page.relative_to(ROOT), name=name):
                    self.assertTrue((ROOT / name).exists())

    def test_prose_keeps_to_120_columns(self):
        for page in pages():
            long = [line for line in prose(page).splitlines() if len(line) > 120 and not line.startswith("|")]
            self.assertEqual(long, [], page.relative_to(ROOT))

    def test_metrics_of_the_sources_are_in_the_reference(self):
        """docs_fleet_test compares all of it, and needs root."""
        declared = set()
        for program in ("operator", "agent", "store"):
            for source in [*(ROOT / program).rglob("*.cc"), *(ROOT / program).rglob("*.h")]:
                declared |= set(re.findall(rf'"(flamefleet_{program}_\w+)"', source.read_text()))
        listed = set(re.findall(r"^\| `(flamefleet_\w+)`", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE))
        self.assertEqual(declared, listed, "make docs-update")

    def test_every_metric_that_a_page_names_exists(self):
        known = metrics_reference.names((ROOT / "docs/metrics.md").read_text())
        for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
            named = set(re.findall(r"\bflamefleet_(?:agent|operator|store)_\w+", page.read_text()))
            self.assertEqual({name for name in named if name not in known and not any(
                series.startswith(name) for series in known)}, set(), page)

    def test_every_annotation_that_is_read_is_in_the_reference(self):
        """AnnotationFacts.EveryDocumentedKeyIsRead is the other half."""
        page = (ROOT / "docs/annotations.md").read_text()
        for family in ("pyroscope.io", "profiles.grafana.com"):
            source = (ROOT / f"operator/plan/{family.split('.')[-2]}_annotations.cc").read_text()
            read = set(re.findall(r'(?:name|field) == "([\w.-]+)"', source))
            self.assertGreater(len(read), 5)
            rows = re.findall(r"^\| (`.*?) \|", page.partition(f"\n## {family}\n")[2].partition("\n## ")[0], re.MULTILINE)
            self.assertEqual({name for name in read if not re.search(rf"[`.-]{re.escape(name)}`", " ".join(rows))}, set(), family)

    def test_every_reason_that_a_page_names_is_explained(self):
        # Fields' values look alike: they are in the reference of the kinds.
        known = set(re.findall(r"\w+", "".join((ROOT / "docs" / name).read_text()
                                               for name in ("reasons.md", "security.md", "crds.md"))))
        for page in (ROOT / "docs").glob("*.md"):
            named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][A-Za-z]*)+)`", page.read_text()))
            self.assertEqual(named - known, set(), page)

    def test_commands_name_the_version_of_this_tree(self):
        version = re.search(r"^project\(flamefleet VERSION (\S+) ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
        for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
            named = set(re.findall(r"(?:/flamefleet:|newTag: )(\d+\.\d+\.\d+)", page.read_text()))
            self.assertLessEqual(named, {version}, page)

    def test_every_page_of_docs_is_in_its_table_of_contents(self):
        contents = set(links(ROOT / "docs/README.md"))
        self.assertEqual({path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"} - contents, set())

    def test_capabilities_of_the_agent_are_each_explained(self):
        golden = json.loads((ROOT / "tests/golden/operator/agent_daemonset_defaults.json").read_text())
        added = golden["spec"]["template"]["spec"]["containers"][0]["securityContext"]["capabilities"]["add"]
        page = (ROOT / "docs/security.md").read_text()
        section = page.partition("## The agent's capabilities\n")[2].partition("\n## ")[0]
        self.assertEqual(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE), added)

    def test_every_dashboard_is_json_with_an_identity_of_its_own(self):
        boards = [json.loads(text) for text in dashboards.files().values()]
        self.assertEqual(len({board["uid"] for board in boards}), len(boards))


if __name__ == "__main__":
    sys.exit(unittest.main())
