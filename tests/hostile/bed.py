"""The target of an attack: an aggregator with TLS and tokens, and honest workers on a tiny model, all real processes."""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

from processes import Aggregator, Archiver, Worker, Workspace, until  # noqa: E402

ROLES = {"archiver": "archiver", "viewer": "viewer", "mallory": "worker"}  # credentials that attackers have
HONEST = ("honest-a", "honest-b", "honest-c")
JOINERS = ("fresh-a",)
# Rings small, so that memory does not grow by what honest rounds leave; seldom evaluations, so that rounds are alike.
FLAGS = ("--ring_bytes", "4194304", "--heartbeat_interval", "500ms", "--suspect_after", "10s", "--lease", "60s")


class Secrets:
    """A CA, certificates and tokens for one suite, in a folder."""

    def __init__(self, folder, distroctl):
        self.tls, self.tokens_file, self.tokens = folder / "tls", folder / "tokens", {}
        self._distroctl = distroctl
        self._ctl("certs", "--out", self.tls, "--host", "127.0.0.1", "--worker", "unused")
        self.ca = self.tls / "ca.pem"
        roles = {**ROLES, **{f"mallory-{i}": "worker" for i in range(8)}, **dict.fromkeys((*HONEST, *JOINERS), "worker"),
                 "admin": "admin"}
        lines = []
        for name, role in roles.items():
            said = self._ctl("token", "new", name, "--role", role)
            self.tokens[name] = re.search(r"^token +(\S+)$", said, re.M)[1]
            lines.append(re.search(r"^line +(.*)$", said, re.M)[1] + "\n")
            (folder / f"{name}.token").write_text(self.tokens[name] + "\n")
            (folder / f"{name}.token").chmod(0o600)
        self.tokens_file.write_text("".join(lines))
        self.folder = folder

    def _ctl(self, *arguments):
        return subprocess.run([self._distroctl, *map(str, arguments)], check=True, capture_output=True, text=True).stdout

    def client(self, name):
        return ("--ca", self.ca, "--token_file", self.folder / f"{name}.token")

    def server(self):
        return ("--cert", self.tls / "server.pem", "--key", self.tls / "server-key.pem", "--ca", self.ca, "--tokens_file",
                self.tokens_file)


class Suite:
    """Shared by all beds of a suite: secrets, the initial model, the version and the data's fingerprint."""

    def __init__(self, binaries):
        self.binaries = binaries
        self.space = Workspace(binaries)
        self.secrets = Secrets(self.space.folder, binaries.distroctl)
        self.model = self.space.init_model()
        self.version = subprocess.run([binaries.worker, "--version"], capture_output=True, text=True).stdout.split()[1]
        self.fingerprint = subprocess.run([binaries.worker, "fingerprint", "--data", str(self.space.text)], check=True,
                                          capture_output=True, text=True).stdout.split()[0]

    def close(self):
        self.space.close()


class Bed:
    """One aggregator with one run and its workers. Ends with close()."""

    def __init__(self, suite, workers=2, flags=(), prefix=(), in_folder=None, **run):
        self.suite = suite
        self.space = Workspace(suite.binaries)
        self.space.text = suite.space.text
        self.data_dir = in_folder or self.space.data_dir
        overrides = {"rounds": 1000000, "start_workers": workers, "kept_per_block": 16, "max_workers": 64,
                     "probation_rounds": 3, "evaluation_interval_rounds": 0, **run}
        port_file = self.space.folder / "ports"
        command = [*prefix, suite.binaries.aggregator, "--data_dir", self.data_dir, "--listen", "127.0.0.1:0", "--http",
                   "127.0.0.1:0", "--port_file", port_file, "--run", self.space.write_run(**overrides), "--model",
                   suite.model, *suite.secrets.server(), *FLAGS, *flags]
        self.aggregator = Aggregator("aggregator", command, self.space.folder, port_file)
        self.space.processes.append(self.aggregator)
        self.aggregator.await_ports()
        self.workers = [self.start_worker(name) for name in HONEST[:workers]]

    def close(self):
        self.space.close()

    def start_worker(self, name):
        command = [self.suite.binaries.worker, "--aggregator", self.aggregator.grpc, "--data", self.space.text, "--name", name,
                   "--summary", self.space.folder / f"{name}.json", *self.suite.secrets.client(name)]
        worker = Worker(name, command, self.space.folder)
        self.space.processes.append(worker)
        return worker

    def start_archiver(self, *flags):
        command = [self.suite.binaries.archiver, "--aggregator", self.aggregator.grpc, "--data_dir",
                   self.space.folder / "archive", *self.suite.secrets.client("archiver"), *flags]
        self.space.processes.append(Archiver("archiver", command, self.space.folder))
        return self.space.processes[-1]

    def committed(self):
        numbers = re.findall(r"round committed round=(\d+)", self.aggregator.log())
        return int(numbers[-1]) if numbers else -1

    def await_round(self, number, limit=60):
        until(lambda: self.aggregator.alive() and self.committed() >= number, f"round {number} is committed", limit)

    def joins(self, name, limit=15):
        """Whether a new worker gets samples, and keeps up for ten rounds without having to begin anew."""
        worker = self.start_worker(name)
        try:
            until(lambda: self.states(name)[-1:] in (["probation"], ["active"]), f"{name} takes part", limit)
            self.await_round(self.committed() + 10, limit)
            return self.states(name).count("joining") == 1
        except AssertionError:
            return False
        finally:
            if worker.child.poll() is None:
                worker.kill()

    def states(self, name):
        """The states that a worker went through, as logged."""
        return self.aggregator.changes(name)

    def describe(self):
        """The attacker's input, as JSON."""
        return json.dumps({"grpc": self.aggregator.grpc, "http": self.aggregator.http(), "ca": str(self.suite.secrets.ca),
                           "tokens": {name: token for name, token in self.suite.secrets.tokens.items()
                                      if name not in (*HONEST, *JOINERS, "admin")},
                           "version": self.suite.version, "fingerprint": self.suite.fingerprint})

    def replay(self):
        """(whether every reported state hash agrees, what `distroctl log replay` says)."""
        done = subprocess.run([self.suite.binaries.distroctl, "log", "replay", "--data_dir", str(self.data_dir)],
                              capture_output=True, text=True)
        return done.returncode == 0, (done.stdout + done.stderr)[-400:]
