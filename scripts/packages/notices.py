"""Writes the licences of everything inside the programs: THIRD_PARTY_LICENSES, one section per source package.

usage: notices.py --build DIR --out FILE TARGET=FILE...      such as distro-worker=build/package/bin/distro-worker
"""

import argparse
import pathlib

import inputs

RULE = "=" * 100


CUDA = """The kernels for GPUs have inline code of the headers of NVIDIA's CUDA Toolkit, by its End User License Agreement:
https://docs.nvidia.com/cuda/eula
"""


def write(packages, cuda, out):
    """The copyright file of each source package. FileNotFoundError where this machine has none. `cuda`: with the toolkit's notice."""
    by_source = {}
    for package in packages:
        if package.source not in inputs.SYSTEM:
            by_source.setdefault(package.source, package)
    sections = ["Libraries of Debian that are inside these files, with their licences as Debian's packages state them.\n"]
    for source, package in sorted(by_source.items()):
        text = package.copyright_file.read_text(errors="replace")
        sections.append(f"{RULE}\n{source} {package.source_version}\n{RULE}\n{text}")
    if cuda:
        sections.append(f"{RULE}\nCUDA Toolkit\n{RULE}\n{CUDA}")
    out.write_text("\n".join(sections))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("targets", nargs="+", metavar="TARGET=FILE")
    options = parser.parse_args()
    paths = set()
    for target, _, output in (item.partition("=") for item in options.targets):
        paths |= inputs.files(options.build, target, output)
    write(inputs.packages(paths), inputs.cuda_toolkit(options.build) is not None, options.out)


if __name__ == "__main__":
    main()
