#!/usr/bin/env python3
"""Writes tables measured on this machine into a page: the text between `<!-- table: NAME -->` and `<!-- end -->` becomes
the day, the machine and NAME.txt.

    bench/page.py docs/performance.md build/reproduce/load.txt
"""
import argparse
import datetime
import os
import pathlib
import re


def hardware():
    with open("/proc/cpuinfo") as file:
        name = re.search(r"model name\s*: (.*)", file.read()).group(1)
    return f"{os.cpu_count()} cores of {name}"


def fill(page, contents):
    """Replaces the tables of `page` that {name: text} names."""
    text = page.read_text()
    for name, content in contents.items():
        pattern = rf"(<!-- table: {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, lambda match: f"{match[1]}{content}\n{match[2]}", text, flags=re.S)
        if count != 1:
            raise SystemExit(f"{page}: has no place for '{name}' (<!-- table: {name} --> ... <!-- end -->)")
    page.write_text(text)


def measured(file):
    """A table below the date of its file and this machine's name."""
    return f"{datetime.date.fromtimestamp(file.stat().st_mtime)}, {hardware()}:\n\n{file.read_text().strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("tables", type=pathlib.Path, nargs="+")
    options = parser.parse_args()
    fill(options.page, {file.stem: measured(file) for file in options.tables})


if __name__ == "__main__":
    main()
