"""Holds every C++ file to .clang-format, and comments, which it leaves alone, to the same 100 columns.

usage: format_test.py SOURCE_ROOT

The version is Debian 12's: others break some lines elsewhere.
"""

import pathlib
import re
import subprocess
import sys

from tools import program

FOLDERS = ("bench", "cmake", "common", "kernels", "server", "tests", "tools", "worker")
SUFFIXES = (".cc", ".h", ".cu", ".cuh")
COLUMNS = 100
VERSION = "14."


def files(root):
    return [path for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in SUFFIXES]


def long_comments(text):
    """The numbers of lines that hold a comment and are too long."""
    return [number for number, line in enumerate(text.splitlines(), 1)
            if len(line) > COLUMNS and re.search(r"(^|\s)//", line)]


def main():
    root = pathlib.Path(sys.argv[1])
    clang_format = program("clang-format")
    version = subprocess.run([clang_format, "--version"], check=True, capture_output=True, text=True).stdout
    if f"version {VERSION}" not in version:
        sys.exit(f"clang-format {VERSION}x of Debian 12 is needed, and this is {version.strip()}")
    sources = files(root)
    failed = False
    for path in sources:
        for number in long_comments(path.read_text()):
            print(f"{path.relative_to(root)}:{number}: a comment beyond column {COLUMNS}")
            failed = True
    failed |= subprocess.run([clang_format, "--dry-run", "-Werror", *sources], check=False).returncode != 0
    print(f"{len(sources)} files")
    sys.exit("clang-format -i fixes what it complains about" if failed else 0)


if __name__ == "__main__":
    main()
