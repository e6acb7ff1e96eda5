"""What scripts/rehearse_first_day gives to its test."""
import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[4]
sys.path[:0] = [str(SOURCE / folder) for folder in ("tests/packages", "tests/integration", "bench/gpu")]


def pytest_addoption(parser):
    parser.addoption("--archive", type=pathlib.Path, required=True, help="of scripts/package_programs --cuda --benchmarks")
    parser.addoption("--cache", type=pathlib.Path, required=True, help="kept between runs: packages of the root, of pip")
