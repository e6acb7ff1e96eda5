#!/usr/bin/env python3
"""Writes tables measured on this machine into pages: on the one that has the place, the text between `<!-- table: NAME -->`
and `<!-- end -->` becomes the day, the machine and NAME.txt.

    bench/page.py --page docs/performance.md --page bench/wire/README.md build/reproduce/load.txt
"""
import argparse
import datetime
import os
import pathlib
import re

VECTORS = (("AVX-512", {"avx512f", "avx512bw", "avx512dq", "avx512vl"}), ("AVX2", {"avx2", "fma"}))


def hardware():
    """Cores, their name and the widest vectors that our kernels use on them, by which rates differ several times."""
    with open("/proc/cpuinfo") as file:
        text = file.read()
    name = re.search(r"model name\s*: (.*)", text).group(1)
    flags = set(re.search(r"flags\s*: (.*)", text).group(1).split())
    widest = next((vectors for vectors, needs in VECTORS if needs <= flags), "SSE2")
    return f"{os.cpu_count()} cores of {name} with {widest}"


def table(header, rows):
    """Lines of a table; short rows end in empty cells."""
    lines = ["| " + " | ".join(map(str, header)) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(map(str, [*row, *[""] * (len(header) - len(row))])) + " |" for row in rows])


def filled(page, contents):
    """The text of `page` with the tables that {name: text} names."""
    text = page.read_text()
    for name, content in contents.items():
        pattern = rf"(<!-- table: {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, lambda match: f"{match[1]}{content}\n{match[2]}", text, flags=re.S)
        if count != 1:
            raise SystemExit(f"{page}: has no place for '{name}' (<!-- table: {name} --> ... <!-- end -->)")
    return text


def fill(page, contents):
    """Replaces these tables."""
    page.write_text(filled(page, contents))


def fill_each(pages, contents):
    """Replaces these tables, each on the one of the pages that has its place."""
    pending = dict(contents)
    for page in pages:
        text = page.read_text()
        fill(page, {name: pending.pop(name) for name in list(pending) if f"<!-- table: {name} -->" in text})
    if pending:
        raise SystemExit(f"{', '.join(map(str, pages))}: no place for {', '.join(pending)}")


def measured(file):
    """A table below the date of its file and this machine's name."""
    return f"{datetime.date.fromtimestamp(file.stat().st_mtime)}, {hardware()}:\n\n{file.read_text().strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=pathlib.Path, action="append", required=True)
    parser.add_argument("tables", type=pathlib.Path, nargs="+")
    options = parser.parse_args()
    fill_each(options.page, {file.stem: measured(file) for file in options.tables})


if __name__ == "__main__":
    main()
