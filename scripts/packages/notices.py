"""Writes the licences of everything inside the programs: THIRD_PARTY_LICENSES, one section per source package.

usage: notices.py --build DIR --out FILE TARGET=FILE...      such as distro-worker=build/package/bin/distro-worker
"""

import argparse
import pathlib

import inputs

RULE = "=" * 100


def write(packages, out):
    """The copyright file of each source package. FileNotFoundError where this machine has none."""
    by_source = {}
    for package in packages:
        if package.source not in inputs.SYSTEM:
            by_source.setdefault(package.source, package)
    sections = ["Libraries of Debian that are inside these files, with their licences as Debian's packages state them.\n"]
    for source, package in sorted(by_source.items()):
        text = package.copyright_file.read_text(errors="replace")
        sections.append(f"{RULE}\n{source} {package.source_version}\n{RULE}\n{text}")
    out.write_text("\n".join(sections))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("targets", nargs="+", metavar="TARGET=FILE")
    options = parser.parse_args()
    found = set()
    for target, _, output in (item.partition("=") for item in options.targets):
        found |= set(inputs.packages(options.build, target, output))
    write(sorted(found), options.out)


if __name__ == "__main__":
    main()
