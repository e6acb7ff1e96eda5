"""Packs the charts of a folder as `helm package` does.

usage: charts.py HELM_FOLDER OUT_FOLDER
"""

import pathlib
import sys

import helm_python


def main():
    source, out = (pathlib.Path(argument) for argument in sys.argv[1:])
    for about in sorted(source.glob("*/Chart.yaml")):
        print(helm_python.package(about.parent, destination=out))


if __name__ == "__main__":
    main()
