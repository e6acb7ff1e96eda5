"""The shell scripts of the project and the YAML of what is deployed pass their linters."""

import os
import pathlib
import re
import shutil
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


def dry_run(folder, *flags):
    """What it says in a checkout that has nothing, on a machine where nothing is installed; that it changed nothing."""
    for path in ("scripts/install_dependencies", "scripts/libtorch-requirements.txt", "scripts/cuda-requirements.txt",
                 "scripts/release-requirements.txt", "scripts/newer-libtorch-requirements.txt", "tests/python/titan/requirements.txt", "tests/deploy/requirements.txt", "tests/hostile/requirements.txt",
                 "tests/python/requirements.txt", "tests/python/trainers/requirements.txt", "tools/data/requirements.txt"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / path, folder / path)
    programs = folder / "programs"
    programs.mkdir()
    for name in ("apt-get", "dpkg", "sudo", "pip", "python3", "dpkg-query"):
        (programs / name).write_text("#!/bin/sh\n" + ("exit 1\n" if name == "dpkg-query" else f"echo {name} >> {folder}/called\n"))
        (programs / name).chmod(0o755)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    environment = {key: value for key, value in os.environ.items() if key != "DISTRO_TORCH_DIR"}
    done = subprocess.run([folder / "scripts/install_dependencies", "--dry_run", *flags], capture_output=True, text=True,
                          env={**environment, "PATH": f"{programs}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    assert "dry run" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    return done.stdout


def test_dry_run_of_install_dependencies_changes_nothing(tmp_path):
    said = dry_run(tmp_path, "--with_tests", "--with_transformers", "--with_torchtitan", "--with_clang", "--with_release", "--cuda")
    assert all(words in said for words in ("apt-get", " chromium", " clang-tidy", " debootstrap", ".deps/python", ".deps/deploy",
                                           ".deps/hostile", ".deps/pytorch", ".deps/transformers", ".deps/data", ".deps/release", ".deps/newer_libtorch",
                                           ".deps/torchtitan", ".deps/cuda"))


def test_build_installs_nothing_for_tests(tmp_path):
    said = dry_run(tmp_path)
    assert ".deps/python" in said and " cmake" in said
    assert not any(words in said for words in ("chromium", "prometheus-alertmanager", "shellcheck", ".deps/deploy", ".deps/data",
                                               ".deps/pytorch", ".deps/transformers"))


def on_system(tmp_path, os_release, *flags):
    """What install_dependencies does where /etc/os-release is another; in a mount namespace of its own."""
    other = tmp_path / "os-release"
    other.write_text(os_release)
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount --bind "$0" /etc/os-release && exec "$@"', other,
               SOURCE / "scripts/install_dependencies", "--dry_run", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"this machine allows no mount namespace: {done.stderr.strip()}")
    return done


@pytest.mark.parametrize("os_release, named", [
    ('PRETTY_NAME="Ubuntu 24.04.1 LTS"\nID=ubuntu\nVERSION_ID="24.04"\n', "Ubuntu 24.04.1 LTS"),
    ('PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\nVERSION_ID="13"\n', "Debian GNU/Linux 13 (trixie)"),
    ("", "without /etc/os-release")])
def test_refuses_other_system_first(tmp_path, os_release, named):
    done = on_system(tmp_path, os_release)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"this system is {named}, " in done.stderr and "supported is Debian 12 (bookworm) on x86-64" in done.stderr


def test_debian_12_is_supported(tmp_path):
    assert on_system(tmp_path, 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n').returncode == 0


def test_distro_data_asks_for_no_system(tmp_path):
    assert on_system(tmp_path, "ID=other\n", "--only_data").returncode == 0


def test_versions_are_equal():
    """CMake's is that of programs, wheel and packages; what cannot read it says the same."""
    def said(path, pattern):
        return set(re.findall(pattern, (SOURCE / path).read_text(), re.M))
    version = said("CMakeLists.txt", r"project\(distro VERSION (\S+)")
    assert len(version) == 1
    for chart in (SOURCE / "helm").glob("*/Chart.yaml"):
        assert said(chart, r'^(?:version|appVersion): "?([^\s"]+)"?$') == version, chart
    assert said("docker/compose.yaml", r"DISTRO_TAG:-([^}]+)}") == version
    for dockerfile in (SOURCE / "docker").glob("*.Dockerfile"):
        assert said(dockerfile, r"^ARG VERSION=(\S+)$") == version, dockerfile
    assert said("CHANGELOG.md", r"\A(?:.*\n)*?## (\S+)") == version, "the newest section"


def release(*flags, path=None):
    environment = {**os.environ, **({"PATH": path} if path else {})}
    return subprocess.run([SOURCE / "scripts/release", *flags], capture_output=True, text=True, env=environment)


def test_release_says_what_it_cannot_make_before_it_makes_anything(tmp_path):
    """Without Buildah and Podman; into a folder that holds something."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "cat", "dirname", "git", "grep", "ls", "realpath", "sed", "env"):
        (tools / name).symlink_to(shutil.which(name))
    out = tmp_path / "out"
    done = release("--out", out, "--uncommitted", path=str(tools))
    assert (done.returncode, done.stdout) == (3, "") and "--without images" in done.stderr, done.stderr
    assert not out.exists()
    out.mkdir()
    (out / "kept").touch()
    done = release("--out", out, "--uncommitted", "--without", "images")
    assert done.returncode == 3 and "is not empty" in done.stderr
    assert [path.name for path in out.iterdir()] == ["kept"]


def test_release_knows_its_parts():
    for flags in (["--without", "nothing"], ["--without", "deb", "--without", "deb"], ["--bogus"]):
        done = release(*flags)
        assert done.returncode == 2 and "--help" in done.stderr, flags


def test_installs_what_distro_data_needs_alone(tmp_path):
    said = dry_run(tmp_path, "--only_data")
    assert ".deps/data" in said
    assert not any(words in said for words in ("apt-get", ".deps/python", ".deps/deploy", ".deps/pytorch"))


def test_reproduce_explains_itself_from_any_folder(tmp_path):
    said = subprocess.run([SOURCE / "scripts/reproduce", "--help"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "--full" in said and "convergence" in said
    wrong = subprocess.run([SOURCE / "scripts/reproduce", "--short"], cwd=tmp_path, capture_output=True, text=True)
    assert wrong.returncode == 2 and "--help" in wrong.stderr
    assert not list(tmp_path.iterdir())


def test_reproduce_names_real_files():
    script = (SOURCE / "scripts/reproduce").read_text()
    named = re.findall(r'\$bench/([\w/]+\.py)', script)
    assert len(named) > 5
    assert [name for name in named if not os.access(SOURCE / "bench" / name, os.R_OK)] == []


def test_long_form_has_place_for_each_table():
    script = (SOURCE / "scripts/reproduce").read_text()
    long_form = script.rpartition("\nelse\n")[2]
    made = set(re.findall(r"^  table (\w+)", long_form, re.M)) - {"study", "learning"}
    pages = [name.replace("$root", ".").replace("$bench", "bench") for name in re.findall(r'--page "([^"]+)"', script)]
    # bench/gpu/first_day makes those of a GPU.
    places = [place for page in pages for place in re.findall(r"<!-- table: (?!gpu_)(\w+) -->", (SOURCE / page).read_text())]
    assert len(places) > 8 and sorted(places) == sorted(made)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
