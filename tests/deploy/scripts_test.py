"""The shell scripts of the project and the YAML of what is deployed pass their linters."""

import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(os.environ.get("DISTRO_SOURCE", pathlib.Path(__file__).resolve().parents[2]))


def shell_scripts():
    candidates = [*SOURCE.glob("scripts/*"), *SOURCE.glob(".ci/*"), *SOURCE.glob("tests/**/*.sh"), *SOURCE.glob("docker/*")]
    return [p for p in sorted(candidates) if p.is_file() and p.read_bytes()[:64].split(b"\n")[0].endswith((b"bash", b"/sh"))]


@pytest.mark.parametrize("script", shell_scripts(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_shellcheck(script):
    subprocess.run(["shellcheck", "--severity=warning", script], check=True)


def test_shellcheck_sees_a_mistake(tmp_path):
    bad = tmp_path / "bad"
    bad.write_text("#!/usr/bin/env bash\ncd $1\nrm -rf $HOME/$unset_thing\n")
    assert subprocess.run(["shellcheck", "--severity=warning", bad], stdout=subprocess.DEVNULL).returncode == 1


def test_dry_run_of_install_dependencies_changes_nothing():
    done = subprocess.run([SOURCE / "scripts/install_dependencies", "--dry_run"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "dry run" in done.stdout


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
