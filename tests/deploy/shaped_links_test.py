"""Where links cannot be shaped or disks made, that is said, and nothing is left: prometheus_live_test is skipped by it."""
import os
import pathlib
import shutil

import pytest

import live_runs
import shaped_links

COMMANDS = ("unshare", "nsenter", "ip", "tc", "sh", "mkdir", "mount", "true")


def attempt(folder):
    with shaped_links.Hub() as hub:
        hub.link(1e6, 1e6)
        live_runs.try_mount(folder)


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """A folder that is the PATH, with links to what is used."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in COMMANDS:
        (folder / name).symlink_to(shutil.which(name) or "/absent")
    monkeypatch.setenv("PATH", str(folder))
    try:
        attempt(tmp_path)
    except shaped_links.Refused as reason:
        pytest.skip(f"not possible here either way: {reason}")
    return folder


def refuse(program):
    program.unlink()
    program.write_text('#!/bin/sh\necho "$0: not permitted" >&2\nexit 1\n')
    program.chmod(0o755)


@pytest.mark.parametrize("name", ["unshare", "nsenter", "ip", "tc"])
@pytest.mark.parametrize("spoil", [pathlib.Path.unlink, refuse], ids=["missing", "refused"])
def test_refuses_broken_program(commands, tmp_path, name, spoil):
    spoil(commands / name)
    before = os.readlink("/proc/thread-self/ns/net")
    with pytest.raises(shaped_links.Refused):
        attempt(tmp_path)
    assert os.readlink("/proc/thread-self/ns/net") == before


def test_tells_refused_mount(commands, tmp_path):
    refuse(commands / "mount")
    with pytest.raises(shaped_links.Refused, match="mount: not permitted"):
        attempt(tmp_path)


def test_tells_refused_user_namespace(commands, tmp_path):
    real = os.readlink(commands / "unshare")
    refuse(commands / "unshare")
    (commands / "unshare").write_text(f'#!/bin/sh\ntest "$1" = --net && exec {real} "$@"\necho "$1: not permitted" >&2; exit 1\n')
    with pytest.raises(shaped_links.Refused, match="-rm: not permitted"):
        attempt(tmp_path)
