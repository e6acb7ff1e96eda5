"""Shows that docs_test.py finds every kind of fault of the pages, and nothing where there is none."""

import pathlib
import tempfile
import unittest

import docs_test as checks


class DocsTest(unittest.TestCase):
    """A made-up tree without a fault, to which each test adds one."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("README.md", "# Project\nSee [the index](docs/README.md) and [heading](docs/page.md#a-heading-twice-1).\n")
        self.write("docs/README.md", "# Index\n[page](page.md), [why](decisions/0001-why.md), [out](https://example.org/x.md)\n")
        self.write("docs/page.md", "# Page\n## A heading, twice\n## A heading, twice\n[up](../README.md) [here](#page)\n")
        self.write("docs/decisions/0001-why.md", "# Why\n[code](../../common/base/log.h)\n")
        self.write("common/base/log.h", "// docs/page.md has more.\n")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def append(self, path, text):
        self.write(path, (self.root / path).read_text() + text)

    def complaints(self):
        return checks.check_links(self.root) + checks.check_index(self.root) + checks.check_mentions(self.root)

    def test_good_tree(self):
        self.assertEqual(self.complaints(), [])

    def test_broken_link(self):
        for page in ("README.md", "docs/README.md", "docs/decisions/0001-why.md"):
            with self.subTest(page):
                before = (self.root / page).read_text()
                self.append(page, "[gone](gone.md)\n")
                self.assertEqual(self.complaints(), [f"{page}: nothing is at gone.md"])
                self.write(page, before)

    def test_link_over_a_line_end(self):
        self.append("README.md", "[two\nwords](gone.md)\n")
        self.assertEqual(len(self.complaints()), 1)

    def test_link_out_of_the_tree(self):
        self.append("README.md", "[out](../)\n")
        self.assertEqual(len(self.complaints()), 1)

    def test_broken_anchor(self):
        self.append("README.md", "[a](docs/page.md#a-heading-twice-2)\n[b](#nothing)\n[c](common/base/log.h#page)\n")
        self.assertEqual(len(self.complaints()), 3)

    def test_code_holds_no_links_and_no_headings(self):
        self.append("README.md", "`[a](gone.md)`\n```\n[b](gone.md)\n# Hidden\n```\n")
        self.assertEqual(self.complaints(), [])
        self.append("README.md", "[c](#hidden)\n")
        self.assertEqual(len(self.complaints()), 1)

    def test_page_that_is_not_in_the_index(self):
        self.write("docs/decisions/0002-lost.md", "# Lost\n")
        self.assertEqual(self.complaints(), ["docs/README.md: docs/decisions/0002-lost.md is not in the index"])

    def test_index_of_a_folder(self):
        self.write("docs/decisions/0002-lost.md", "# Lost\n")
        self.write("docs/decisions/README.md", "# Decisions\n[lost](0002-lost.md)\n")
        self.assertEqual(len(self.complaints()), 2)
        self.append("docs/README.md", "[decisions](decisions/README.md)\n")
        self.assertEqual(self.complaints(), [])

    def test_index_that_is_missing(self):
        (self.root / "docs/README.md").unlink()
        self.assertEqual(len([c for c in self.complaints() if "is not in the index" in c]), 2)

    def test_source_that_names_a_page_that_is_not_there(self):
        self.append("common/base/log.h", "// docs/gone.md\n")
        self.assertEqual(self.complaints(), ["common/base/log.h: there is no docs/gone.md"])


if __name__ == "__main__":
    unittest.main()
