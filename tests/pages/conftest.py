"""Options of scripts/test_pages; bare roots are those of the packages' tests."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "packages"))


def pytest_addoption(parser):
    parser.addoption("--cache", type=pathlib.Path, required=True, help="kept between runs: the root's Debian packages")
    parser.addoption("--all", action="store_true", help="./scripts/test too")
