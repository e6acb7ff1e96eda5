"""Writes what the chart distro-monitoring has from scripts/generate_dashboards: it is not in git."""
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "generate_dashboards"


def pytest_configure():
    done = subprocess.run([sys.executable, PROGRAM, "--check"], capture_output=True, text=True)
    if done.returncode:
        raise pytest.UsageError(done.stdout + done.stderr)
