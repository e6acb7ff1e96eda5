"""The Debian packages in bare roots: apt installs them with what they need, aggregator and worker of them train."""

import re
import shlex
import signal

import pytest

from processes import Aggregator, Archiver, Worker, until

STATE = "var/lib/distro"


@pytest.fixture(scope="module")
def installed(root, one):
    """The root with both packages, as apt installs a file with its dependencies."""
    packages = [one("distro-aggregator_*.deb"), one("distro-worker_*.deb")]
    root.bind(packages[0].parent, "/packages")
    root.install(*(f"/packages/{package.name}" for package in packages))
    return root


def unit(root, service):
    return (root.folder / f"usr/lib/systemd/system/{service}.service").read_text()


def service_command(root, service, flags):
    """The command of a unit, with these flags in the place of /etc/default's."""
    command = re.search(r"^ExecStart=(.*)$", unit(root, service), re.M)[1]
    assert command.endswith(" $ARGS")
    return [*shlex.split(command.removesuffix(" $ARGS")), *flags]


def default_flags(root, service):
    return shlex.split(re.search(r'^ARGS="(.*)"$', (root.folder / "etc/default" / service).read_text(), re.M)[1])


def test_programs_run(installed):
    version = installed.run("dpkg-query", "-W", "-f", "${Version}", "distro-aggregator").strip()
    for program in ("distro-aggregator", "distro-archiver", "distroctl"):
        assert version in installed.run(program, "--version")
    loaded = installed.run("ldd", "/usr/lib/distro-aggregator/bin/distro-aggregator")
    assert "not found" not in loaded
    assert "/usr/lib/distro-aggregator/bin/../lib/libprometheus-cpp-core" in loaded


def test_user_owns_its_folder_only(installed):
    assert installed.run("stat", "-c", "%U %a", f"/{STATE}", f"/{STATE}/aggregator").split() == ["distro", "750"] * 2
    assert installed.run("getent", "passwd", "distro").strip().endswith(("/usr/sbin/nologin", "/bin/false"))
    assert installed.run("find", "/etc", "/usr", "-user", "distro") == ""


def test_units_are_valid_and_as_hardened_as_the_chart(installed):
    installed.apt("install", "systemd")
    for service in ("distro-aggregator", "distro-archiver"):
        said = installed.run("systemd-analyze", "verify", "--man=no", f"/usr/lib/systemd/system/{service}.service")
        assert service not in said, said
        text = unit(installed, service)
        for line in ("User=distro", "NoNewPrivileges=true", "CapabilityBoundingSet=", "ProtectSystem=strict",
                     "SystemCallFilter=@system-service"):
            assert re.search(rf"^{re.escape(line)}$", text, re.M), line
        if installed.suite.name == "jammy":
            continue  # its systemd cannot judge a unit that is not running
        said = installed.run("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20",
                             f"/usr/lib/systemd/system/{service}.service")
        exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)[1]
        assert float(exposure) < 2, said


def test_worker_without_libtorch_names_the_remedy(installed):
    said = installed.run("distro-worker", "--help", code=2)
    assert "/etc/distro/torch" in said and "README.Debian" in said
    readme = (installed.folder / "usr/share/doc/distro-worker/README.Debian").read_text()
    assert "ln -sfn /opt/distro-torch" in readme


class Site:
    """A run in a root: what an operator does by README.Debian, on this host; the aggregator takes a free port."""

    def __init__(self, root, workspace):
        self.root, self.space = root, workspace
        self.commands = self.commands_of("distro-aggregator")
        root.run("mkdir", "-m", "700", "-p", "/root/run")

    def commands_of(self, package):
        """The indented lines of its README.Debian, for this host."""
        text = (self.root.folder / f"usr/share/doc/{package}/README.Debian").read_text()
        return [line.strip().replace("aggregator.example", "127.0.0.1") for line in re.findall(r"^ {5,}\S.*$", text, re.M)]

    def type(self, *commands):
        self.root.run("sh", "-e", "-c", "\n".join(("cd /root/run", *commands)))

    def start(self, kind, name, command, user, *more):
        process = kind(name, self.root.command(*command, user=user), self.space.folder, *more)
        self.space.processes.append(process)
        return process

    def start_aggregator(self):
        ports = self.root.folder / STATE / "aggregator.ports"
        flags = [flag for flag in default_flags(self.root, "distro-aggregator") if not flag.startswith(("--listen", "--http"))]
        flags += ["--listen=127.0.0.1:0", "--http=127.0.0.1:0", f"--port_file=/{STATE}/aggregator.ports"]
        command = service_command(self.root, "distro-aggregator", flags)
        return self.start(Aggregator, "aggregator", command, "distro", ports).await_ports()

    def start_archiver(self, aggregator):
        flags = [flag for flag in default_flags(self.root, "distro-archiver") if not flag.startswith("--http")]
        command = service_command(self.root, "distro-archiver", [*flags, f"--aggregator={aggregator.grpc}", "--http=127.0.0.1:0"])
        return self.start(Archiver, "archiver", command, "distro")

    def start_worker(self, name, aggregator):
        command = ["distro-worker", "--invite", f"/root/run/{name}.invite", "--aggregator", aggregator.grpc, "--data", self.space.text,
                   "--summary", self.space.folder / f"{name}.json"]
        return self.start(Worker, name, command, "root")


@pytest.fixture(scope="module")
def with_torch(installed, torch):
    """LibTorch by the package's link, where the root sees that of this machine."""
    installed.bind(torch.parent, "/opt/distro-torch")
    (installed.folder / "etc/distro/torch").symlink_to("/opt/distro-torch/torch")
    return installed


def test_service_trains_workers_of_the_package(with_torch, workspace):
    """README.Debian as printed, the units' commands as their user with the default flags: TLS, tokens, two workers, an archiver."""
    site = Site(with_torch, workspace)
    site.type(*site.commands, site.commands[5].replace("invite w1 ", "invite w2 "))
    aggregator = site.start_aggregator()
    run = workspace.write_run(rounds=20, start_workers=2, min_workers=2, peak_learning_rate=0.01)
    site.type(f"distroctl run create {aggregator.grpc} --invite admin.invite --run {run} --model {workspace.init_model()}")
    archiver = site.start_archiver(aggregator)
    workers = [site.start_worker(name, aggregator) for name in ("w1", "w2")]
    for process in (*workers, archiver):
        assert process.exit_code() == 0, workspace.logs()
    assert len({worker.summary()["state_hash"] for worker in workers}) == 1
    published = with_torch.folder / STATE / "archiver/published"
    assert (published / "round-20/model.safetensors").exists(), list(published.iterdir())
    aggregator.signal(signal.SIGTERM)
    assert aggregator.exit_code() == 0, workspace.logs()
    assert with_torch.run("find", f"/{STATE}", "-not", "-user", "distro") == ""


def test_worker_of_the_tarball_joins_the_packaged_aggregator(with_torch, workspace):
    root = with_torch
    ports = workspace.folder / "ports"
    command = workspace.aggregator_command("--port_file", ports, "--run", workspace.write_run(rounds=10),
                                           "--model", workspace.init_model(), data_dir=f"/{STATE}/other")
    command[0] = "distro-aggregator"
    aggregator = Aggregator("aggregator", root.command(*command, user="distro"), workspace.folder, ports)
    workspace.processes.append(aggregator)
    aggregator.await_ports()
    worker = workspace.start_worker("outside", aggregator.grpc)
    assert worker.exit_code() == 0, workspace.logs()
    until(lambda: aggregator.alive(), "the aggregator stays")


def test_purge_keeps_the_run(installed):
    """The last: the package is gone after it."""
    (installed.folder / STATE / "aggregator/kept").touch()
    said = installed.apt("purge", "distro-aggregator")
    assert "kept /var/lib/distro" in said
    assert (installed.folder / STATE / "aggregator/kept").exists()
    assert not (installed.folder / "etc/default/distro-aggregator").exists()
    assert not (installed.folder / "usr/bin/distro-aggregator").exists()
