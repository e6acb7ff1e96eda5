"""What the tests of the packages share: the folder that scripts/release wrote, and a workspace with its programs."""

import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/integration"))
os.environ["DISTRO_TEST_METHOD"] = "deltas"  # of the runs that Workspace makes
import bare_root  # noqa: E402
import processes  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--packages", type=pathlib.Path, required=True, help="what scripts/release wrote")
    parser.addoption("--cache", type=pathlib.Path, required=True, help="kept between runs: packages of roots, of pip")


@pytest.fixture(scope="session")
def packages(request):
    return request.config.getoption("--packages").resolve()


@pytest.fixture(scope="session")
def one(packages):
    """The one file of a name of the release."""
    def find(pattern):
        found = sorted(packages.glob(pattern))
        assert len(found) == 1, f"{pattern} in {packages}: {found}"
        return found[0]
    return find


@pytest.fixture(params=bare_root.SUITES, scope="module")
def root(request, tmp_path_factory):
    """A bare root of each distribution, one at a time; skipped by name where none can be had."""
    with bare_root.root_of(bare_root.SUITES[request.param], request, tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="session")
def torch():
    """LibTorch of scripts/install_dependencies."""
    found = sorted(SOURCE.glob(".deps/python/lib/python3*/site-packages/torch"))
    assert found, "there is no LibTorch: scripts/install_dependencies"
    return found[0].resolve()


@pytest.fixture(scope="session")
def tarball(one, torch, tmp_path_factory):
    """The tarball, unpacked, with LibTorch beside it as its README says."""
    folder = tmp_path_factory.mktemp("tarball")
    subprocess.run(["tar", "-C", folder, "-xzf", one("distro-*-linux-x86_64.tar.gz")], check=True)
    programs = next(folder.iterdir())
    (programs / "torch").symlink_to(torch)
    return programs


@pytest.fixture
def workspace(tarball, root):
    """Processes and their folder, which the root sees at the same place; the programs are those of the tarball."""
    space = processes.Workspace(processes.programs_in(tarball / "bin"))
    space.folder.chmod(0o777)
    root.bind(space.folder, writable=True)
    yield space
    root.unbind(space.folder)
    space.close()
