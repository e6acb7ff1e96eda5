"""Bare roots: folders with the least that a distribution is, made by debootstrap, in which packages are installed and run.

    with BareRoot(SUITES["bookworm"], folder) as root:
        root.install("python3-venv", "libgomp1")
        root.run("python3", "--version")
        process = subprocess.Popen(root.command("sleep", "60", user="nobody"))

Needs root: chroot and mounts, each in a mount namespace that ends with its command. A command's process is the program
itself, which gets its signals. The machine's network is the root's: servers listen on loopback.
"""

import contextlib
import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess
import urllib.request

import pytest

DEBIAN_KEYS = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Debian 12 has no package of Ubuntu's keys; this one is known by its hash.
UBUNTU_KEYS = ("http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/ubuntu-keyring_2021.03.26_all.deb",
               "0d0e7ed6b112f5d03eabf3c7eb01ebdacf9c57714b279e90495cfc58c8c4520f")
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
PASSED_ON = ("PIP_CERT", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "http_proxy", "https_proxy", "no_proxy")
MINUTES = 60


@dataclasses.dataclass(frozen=True)
class Suite:
    """A distribution's release: its name for debootstrap, where its packages are, and the Python it has."""

    name: str
    title: str
    python: str
    mirror: str
    components: str
    script: str  # debootstrap's for it, where it has none of this name


DEBIAN, UBUNTU = "http://deb.debian.org/debian", "http://archive.ubuntu.com/ubuntu"
SUITES = {suite.name: suite for suite in (
    Suite("bookworm", "Debian 12", "3.11", DEBIAN, "main", "sid"),
    Suite("trixie", "Debian 13", "3.13", DEBIAN, "main", "sid"),
    Suite("jammy", "Ubuntu 22.04", "3.10", UBUNTU, "main,universe", "gutsy"),
    Suite("noble", "Ubuntu 24.04", "3.12", UBUNTU, "main,universe", "gutsy"))}


def skip_unless_possible(suite):
    """Skips by name where this machine can make no root of the suite."""
    if os.geteuid() != 0:
        pytest.skip(f"{suite.title}: chroot needs root")
    if shutil.which("debootstrap") is None:
        pytest.skip(f"{suite.title}: there is no debootstrap; scripts/install_dependencies --with_release")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip(f"{suite.title}: this machine allows no mount namespace")
    try:
        urllib.request.urlopen(f"{suite.mirror}/dists/{suite.name}/InRelease", timeout=20).close()
    except OSError as error:
        pytest.skip(f"{suite.title}: {suite.mirror} does not serve {suite.name}: {error}")


def keyring(suite, cache):
    """The file with the keys that the suite's index is signed with."""
    if suite.mirror == DEBIAN:
        return DEBIAN_KEYS
    address, expected = UBUNTU_KEYS
    package = cache / address.rsplit("/", 1)[1]
    if not package.exists():
        with urllib.request.urlopen(address, timeout=60) as answer:
            package.write_bytes(answer.read())
    assert hashlib.sha256(package.read_bytes()).hexdigest() == expected, f"{package} is not the package it should be"
    subprocess.run(["dpkg-deb", "--extract", package, cache / "ubuntu-keyring"], check=True)
    return cache / "ubuntu-keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg"


@contextlib.contextmanager
def root_of(suite, request, tmp_path_factory):
    """For fixtures: a root of the suite, with the folder of pytest's --cache; skips by name where none can be had."""
    skip_unless_possible(suite)
    cache = request.config.getoption("--cache").resolve()
    with BareRoot(suite, tmp_path_factory.mktemp(suite.name) / "root", cache) as root:
        yield root


class BareRoot:
    """A root in `folder`, which its end removes. `cache` keeps packages between runs."""

    def __init__(self, suite, folder, cache):
        self.suite, self.folder, self.cache = suite, pathlib.Path(folder), pathlib.Path(cache)
        self.binds = []

    def __enter__(self):
        archives = self.cache / self.suite.name
        archives.mkdir(parents=True, exist_ok=True)
        scripts = pathlib.Path("/usr/share/debootstrap/scripts")
        script = [] if (scripts / self.suite.name).exists() else [str(scripts / self.suite.script)]
        done = subprocess.run(
            ["unshare", "--mount", "debootstrap", "--variant=minbase", f"--components={self.suite.components}", f"--cache-dir={archives}",
             f"--keyring={keyring(self.suite, self.cache)}", self.suite.name, str(self.folder), self.suite.mirror, *script],
            capture_output=True, text=True, timeout=20 * MINUTES)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        for name in ("resolv.conf", "hosts"):
            shutil.copyfile(pathlib.Path("/etc") / name, self.folder / "etc" / name)
        (self.folder / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")  # a package starts no service here
        (self.folder / "usr/sbin/policy-rc.d").chmod(0o755)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def bind(self, source, target=None, writable=False):
        """Shows a file or folder of this machine to the commands that follow, at the same place unless `target` is given."""
        source = pathlib.Path(source).resolve(strict=True)
        bind = (str(source), str(target or source), writable)
        if bind not in self.binds:
            self.binds.append(bind)

    def unbind(self, source):
        """What bind(source) showed is not there any more."""
        self.binds = [bind for bind in self.binds if bind[0] != str(pathlib.Path(source).resolve())]

    def command(self, *command, user="root", environment=None):
        """What runs a command in the root, from /, with nothing of this machine's environment."""
        lines = ["set -e"]
        # The root has a /dev of its own: what a package's scripts do stays inside. A process may write to its own folder of /proc.
        shown = [("/proc", "/proc", True), ("/proc/sys", "/proc/sys", False), ("/sys", "/sys", False)]
        for source, target, writable in [*shown, *self.binds]:
            place = f"{self.folder}{target}"
            if os.path.isdir(source):
                lines.append(f"mkdir -p '{place}'")
            else:
                lines.append(f"mkdir -p '{os.path.dirname(place)}' && touch '{place}'")
            lines.append(f"mount --bind '{source}' '{place}'")
            if not writable:
                lines.append(f"mount -o remount,bind,ro '{place}'")
        # Terminals of its own.
        devices = f"{self.folder}/dev"
        lines.append(f"mkdir -p '{devices}/pts' && mount -t devpts -o newinstance,ptmxmode=0666 devpts '{devices}/pts'")
        lines.append(f"ln -sf pts/ptmx '{devices}/ptmx'")
        # --pdeathsig after the user has changed, which clears it.
        lines.append(f"group=$(chroot '{self.folder}' id -g {user})")
        lines.append(f"exec chroot '{self.folder}' /usr/bin/setpriv --reuid={user} --regid=$group --init-groups --pdeathsig=KILL "
                     "-- /usr/bin/env -i \"$@\"")
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8",
                     **(environment or {})}
        return ["unshare", "--mount", "sh", "-c", "\n".join(lines), "sh", *(f"{key}={value}" for key, value in variables.items()),
                *(str(part) for part in command)]

    def run(self, *command, code=0, timeout=10 * MINUTES, **more):
        """Runs it to its end; what it printed."""
        done = subprocess.run(self.command(*command, **more), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout)
        assert done.returncode == code, f"{command} ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout + done.stderr

    def apt(self, *arguments):
        return self.run("apt-get", "-y", "-q", "--no-install-recommends", *arguments,
                        environment={"DEBIAN_FRONTEND": "noninteractive"})

    def install(self, *packages):
        """Debian packages, by name or by a file's path inside, with what they depend on."""
        self.apt("update")
        self.apt("install", *packages)

    def pip(self, python, *arguments):
        """pip of a Python inside, with this machine's certificates, settings and a cache that is kept."""
        if CERTIFICATES.exists():
            self.bind(CERTIFICATES, CERTIFICATES)
        cache = self.cache / "pip"
        cache.mkdir(exist_ok=True)
        self.bind(cache, "/var/cache/pip", writable=True)
        settings = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        return self.run(python, "-m", "pip", "--disable-pip-version-check", "--cache-dir", "/var/cache/pip", *arguments,
                        environment=settings)
