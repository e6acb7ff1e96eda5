"""Holds the pages to what they point at: every page of docs/ is in its index or in that of its folder, every relative link
leads to a file, an anchor to a heading of it, and every page that a source file names exists.

usage: docs_test.py ROOT_OF_THE_SOURCES
"""

import os
import pathlib
import re
import sys

SOURCE_FOLDERS = ("bench", "cmake", "common", "kernels", "proto", "scripts", "server", "tests", "tools", "worker")
BINARIES = (".bin", ".payload", ".safetensors", ".pyc")
PAGES = ("*.md", "bench/**/*.md", "docs/**/*.md", "examples/**/*.md", "tests/**/*.md")


def prose(text):
    """The text without code: neither fenced blocks nor `spans` hold links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def links(text):
    """Targets of [text](target) that are not addresses of the outside."""
    targets = re.findall(r"\[[^\]]*\]\(\s*([^)\s]+)\s*\)", prose(text))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(text):
    """What #... may name: headings in lower case, words joined by hyphens, without punctuation; repeats get a number."""
    names = set()
    for heading in re.findall(r"^#+ +(.*?)\s*$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL),
                              re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = 0
        while (f"{name}-{count}" if count else name) in names:
            count += 1
        names.add(f"{name}-{count}" if count else name)
    return names


def pages(root):
    return sorted({path for pattern in PAGES for path in root.glob(pattern)})


def target_of(page, target):
    """(file or folder, anchor or "") that a relative link of a page means."""
    path, _, anchor = target.partition("#")
    return (pathlib.Path(os.path.normpath(page.parent / path)) if path else page), anchor


def check_links(root):
    complaints = []
    for page in pages(root):
        for target in links(page.read_text()):
            path, anchor = target_of(page, target)
            if not path.is_relative_to(root) or not path.exists():
                complaints.append(f"{page.relative_to(root)}: nothing is at {target}")
            elif anchor and (path.suffix != ".md" or anchor not in anchors(path.read_text())):
                complaints.append(f"{page.relative_to(root)}: no heading makes the anchor of {target}")
    return complaints


def linked_from(index):
    return {target_of(index, target)[0] for target in links(index.read_text())} if index.exists() else set()


def check_index(root):
    index = root / "docs" / "README.md"
    linked = linked_from(index)
    for inner in [page for page in linked if page.name == "README.md" and page.is_relative_to(root / "docs")]:
        linked |= linked_from(inner)  # the index of a folder
    return [f"docs/README.md: {page.relative_to(root)} is not in the index"
            for page in pages(root) if page.is_relative_to(root / "docs") and page not in linked | {index}]


def check_mentions(root):
    complaints = []
    for folder in SOURCE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if not path.is_file() or path.suffix in BINARIES or path.name == "docs_self_test.py":  # its pages are made up
                continue
            for page in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(errors="replace")):
                if not (root / page).is_file():
                    complaints.append(f"{path.relative_to(root)}: there is no {page}")
    return complaints


def main():
    root = pathlib.Path(sys.argv[1]).absolute()
    failed = False
    for check in (check_links, check_index, check_mentions):
        complaints = sorted(set(check(root)))
        print(f"{check.__name__}: {len(complaints)} complaints")
        for complaint in complaints:
            print("  " + complaint)
        failed |= bool(complaints)
    print(f"{len(pages(root))} pages")
    sys.exit(1 if failed or not pages(root) else 0)


if __name__ == "__main__":
    main()
