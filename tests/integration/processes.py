"""Real processes for tests: an aggregator, workers and distroctl in a scratch folder, on ports that the system picks.

Nothing waits for a fixed time: `until` polls a condition, one limit covers all of a test. Whatever a test leaves behind ends
with its Workspace.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import types
import unittest
import urllib.error
import urllib.request

from proxy import Proxy

LIMIT_SECONDS = 200  # for anything that is waited for; ctest's own limit is above it

MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 64,
    "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32, "num_attention_heads": 2,
    "num_hidden_layers": 1, "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "tie_word_embeddings": True, "vocab_size": 256}

METHODS = {"signs": {"beta": 0.9, "kept_per_block": 4}, "deltas": {"kept_per_block": 8, "local_steps": 2}}
METHOD = os.environ.get("DISTRO_TEST_METHOD", "signs")
RUN = {
    "name": "test", "seed": 7, "rounds": 200, "peak_learning_rate": 0.002, "warmup_rounds": 5, "method": METHOD,
    **METHODS[METHOD], "segment_blocks": 4, "sequence_length": 16, "samples_per_worker": 4,
    "held_out_fraction": 0.05, "evaluation_samples": 16, "overlap": 0}

# In front of a command: it ends with the thread that started it, also when ctest kills the test.
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")

HTTP_PORT = r"http=(127\.0\.0\.1:[1-9]\d*)"

VARNISH_RULES = pathlib.Path(__file__).resolve().parents[2] / "helm/distro/files/objects.vcl"

WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "ran", "to", "it")


def until(condition, what, limit=LIMIT_SECONDS):
    """Polls until the condition holds, and returns its value."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.02)


def answers(url):
    """Whether an HTTP server answers there, with any status."""
    try:
        urllib.request.urlopen(url)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def hold_port(host="127.0.0.1"):
    """A socket that keeps a port of this machine for programs that start one after the other: it does not listen, so they can, as they
    set SO_REUSEADDR; nobody else gets the port, and connections are refused while none of them listens."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((host, 0))
    return holder


def programs_in(folder):
    """The programs of the project in a folder of binaries."""
    return types.SimpleNamespace(**{name.removeprefix("distro-"): f"{folder}/{name}" for name in
                                    ("distro-aggregator", "distro-worker", "distro-archiver", "distroctl")})


def text(seed):
    """Some 40 KB of words, other words for another seed."""
    state, words = seed, []
    for _ in range(10000):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        words.append(WORDS[(state >> 33) % len(WORDS)])
    return " ".join(words)


class Process:
    """A child with its output in files; what it leaves in its temporary folder goes with `folder`."""
    kind = "process"

    def __init__(self, name, command, folder):
        self.name, self.command = name, [str(part) for part in command]
        self.log_path = folder / f"{name}.log"
        self.out_path = folder / f"{name}.out"
        with open(self.log_path, "ab") as log, open(self.out_path, "ab") as out:
            self.child = subprocess.Popen([*ENDS_WITH_US, *self.command], stdin=subprocess.DEVNULL, stdout=out, stderr=log,
                                          env={**os.environ, "TMPDIR": str(folder)})

    def log(self):
        return self.log_path.read_text()

    def signal(self, number):
        self.child.send_signal(number)

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.child.wait()

    def exit_code(self, limit=LIMIT_SECONDS):
        """Waits for the end."""
        try:
            return self.child.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} has not ended within {limit} s; its log:\n{self.log()[-4000:]}") from None

    def alive(self):
        if self.child.poll() is None:
            return True
        raise AssertionError(f"{self.name} ended with {self.child.returncode}; its log:\n{self.log()[-4000:]}")

    def find(self, pattern):
        """The first match in the log of a process that should still run."""
        return until(lambda: re.search(pattern, self.log()) or not self.alive(), f"{self.name} logs {pattern}")

    def http(self):
        return self.find(HTTP_PORT)[1]

    def serves(self):
        """Whether its metrics can be read now."""
        return re.search(HTTP_PORT, self.log()) is not None

    def get(self, path):
        """Status and body."""
        try:
            with urllib.request.urlopen(f"http://{self.http()}{path}", timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name, **labels):
        """The value of a series; None when there is none."""
        for line in self.get("/metrics")[1].splitlines():
            match = re.fullmatch(rf"{name}(?:{{(.*)}})? (\S+)", line)
            if match and dict(re.findall(r'(\w+)="([^"]*)"', match[1] or "")) == labels:
                return float(match[2])
        return None


class Worker(Process):
    kind = "worker"

    def summary(self):
        return json.loads((self.log_path.parent / f"{self.name}.json").read_text())

    def applied(self):
        """The first round that is not in its parameters; 0 while it has none."""
        return int(self.metric("distro_worker_round") or 0)

    def has_summary(self):
        """A worker that ends before it has parameters writes none."""
        return (self.log_path.parent / f"{self.name}.json").exists()


class Archiver(Process):
    kind = "archiver"


class Aggregator(Process):
    kind = "aggregator"

    def __init__(self, name, command, folder, port_file):
        super().__init__(name, command, folder)
        self.port_file = port_file

    def await_ports(self):
        until(lambda: self.alive() and self.port_file.exists(), "the aggregator listens")
        self.grpc, self._http = re.match(r"grpc=(\S+) http=(\S+)", self.port_file.read_text()).groups()
        return self

    def http(self):
        return self._http

    def round(self):
        return int(self.metric("distro_aggregator_round"))

    def await_round(self, round_number):
        until(lambda: self.alive() and self.round() >= round_number, f"round {round_number}")

    def await_state(self, worker, state):
        until(lambda: self.alive() and self.metric("distro_aggregator_worker_state", worker=worker, state=state) == 1,
              f"{worker} is {state}")

    def changes(self, worker):
        """The states that a worker went through, as logged."""
        return re.findall(rf"worker changed worker={worker} state=(\w+)", self.log())

    def rounds(self):
        """(round, why it closed) of every committed round, as logged."""
        return [(int(number), reason) for number, reason in
                re.findall(r"round committed round=(\d+) .*reason=(\w+)", self.log())]


class Workspace:
    def __init__(self, binaries):
        self.binaries = binaries
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="distro-"))
        self.data_dir = self.folder / "data"
        self.processes = []
        self.proxies = []
        self.holders = []
        self.model = {}  # other values than MODEL has
        self.beside_model = {}  # further files of the initial folder
        self.text = self.folder / "text.txt"
        self.text.write_text(text(1))

    def close(self):
        for process in self.processes:
            if process.child.poll() is None:
                process.kill()
        for proxy in self.proxies:
            proxy.close()
        for holder in self.holders:
            holder.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def logs(self):
        return "\n".join(f"--- {process.name} {process.child.returncode}\n{process.log()[-3000:]}"
                         for process in self.processes)

    def write_run(self, **overrides):
        """None takes a key of RUN out."""
        path = self.folder / "run.json"
        path.write_text(json.dumps({key: value for key, value in {**RUN, **overrides}.items() if value is not None}))
        return path

    def init_model(self):
        (self.folder / "config.json").write_text(json.dumps({**MODEL, **self.model}))
        self.distroctl("init-model", "--config", self.folder / "config.json", "--seed", 1, "--out",
                       self.folder / "model")
        for name, content in self.beside_model.items():
            (self.folder / "model" / name).write_bytes(content)
        return self.folder / "model"

    def distroctl(self, *arguments, code=0):
        """Runs a command to its end and returns its standard output."""
        command = [self.binaries.distroctl, *map(str, arguments)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_SECONDS,
                              env={**os.environ, "TMPDIR": str(self.folder)})
        if done.returncode != code:
            raise AssertionError(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def states(self, aggregator):
        """State by worker, as `distroctl workers` shows it."""
        listed = json.loads(self.distroctl("workers", aggregator.grpc, "--insecure", "--output", "json"))
        return {worker["name"]: worker["state"] for worker in listed["workers"]}

    def hold_address(self):
        """An address for aggregators that start one after the other, until this ends."""
        self.holders.append(hold_port())
        return "%s:%d" % self.holders[-1].getsockname()

    def aggregator_command(self, *flags, data_dir=None, listen=None):
        return [self.binaries.aggregator, "--data_dir", data_dir or self.data_dir, "--listen", listen or self.hold_address(),
                "--http", "127.0.0.1:0", "--insecure", "--heartbeat_interval", "100ms",
                "--suspect_after", "2s", *flags]

    def start_aggregator(self, *flags, log_name="aggregator", prefix=(), **places):
        """Returns when it listens. `prefix` comes before the command."""
        port_file = self.folder / f"{log_name}.ports"
        port_file.unlink(missing_ok=True)
        command = [*prefix, *self.aggregator_command("--port_file", port_file, *flags, **places)]
        self.processes.append(Aggregator(log_name, command, self.folder, port_file))
        return self.processes[-1].await_ports()

    def start(self, name, command):
        self.processes.append(Process(name, command, self.folder))
        return self.processes[-1]

    def start_varnish(self, objects, address=None, cache="1G"):
        """Varnish with the chart's rules in front of an aggregator's port of objects: the process, and its URL. It keeps `cache` bytes."""
        address = address or self.hold_address()
        host, port = objects.split(":")
        rules = VARNISH_RULES.read_text().replace('"aggregator"', f'"{host}"').replace('"7704"', f'"{port}"')
        (self.folder / "objects.vcl").write_text(rules)
        varnish = self.start("varnish", [
            "varnishd", "-F", "-j", "none", "-a", address, "-f", self.folder / "objects.vcl", "-s", f"malloc,{cache}",
            "-p", "send_timeout=86400", "-n", self.folder / "varnish"])
        until(lambda: answers(f"http://{address}/healthz"), "Varnish answers")
        return varnish, f"http://{address}"

    def create_run(self, *flags, listen=None, **overrides):
        """An aggregator with a run of RUN and `overrides`."""
        return self.start_aggregator("--run", self.write_run(**overrides), "--model", self.init_model(), *flags, listen=listen)

    def start_proxy(self, target):
        self.proxies.append(Proxy(target))
        return self.proxies[-1]

    def start_worker(self, name, address, *flags, log_name=None):
        command = [self.binaries.worker, "--aggregator", address, "--data", self.text, "--name", name, "--insecure",
                   "--summary", self.folder / f"{log_name or name}.json", *flags]
        worker = Worker(log_name or name, command, self.folder)
        self.processes.append(worker)
        return worker

    def start_archiver(self, address, *flags, log_name="archiver"):
        command = [self.binaries.archiver, "--aggregator", address, "--data_dir", self.folder / "archive", "--publish_dir",
                   self.folder / "published", "--insecure", *flags]
        self.processes.append(Archiver(log_name, command, self.folder))
        return self.processes[-1]

    def replay(self):
        """The output of `distroctl log replay`, as a dictionary of its lines."""
        lines = self.distroctl("log", "replay", "--data_dir", self.data_dir).splitlines()
        return dict(line.split(maxsplit=1) for line in lines if line[:1] not in ("", " ") and not
                    line.startswith("replayed"))


class ProcessTest(unittest.TestCase):
    """A test with a Workspace."""
    binaries = None

    def setUp(self):
        self.workspace = Workspace(self.binaries)
        self.addCleanup(self.workspace.close)

    def finish(self, workers):
        """Waits for workers of a run that is done; their (equal) state hash."""
        for worker in workers:
            self.assertEqual(worker.exit_code(), 0, worker.name)
        hashes = {worker.name: worker.summary()["state_hash"] for worker in workers}
        self.assertEqual(len(set(hashes.values())), 1, hashes)
        return next(iter(hashes.values()))


class Result(unittest.TextTestResult):
    """Shows what the processes of a failed test logged, while their folder is still there."""

    def addError(self, test, err):
        self.show_logs(test)
        super().addError(test, err)

    def addFailure(self, test, err):
        self.show_logs(test)
        super().addFailure(test, err)

    def show_logs(self, test):
        if hasattr(test, "workspace"):
            self.stream.writeln(test.workspace.logs())


def add_binaries(parser):
    for name in ("aggregator", "worker", "distroctl"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--archiver")


def main():
    # A shell lets what it starts in the background ignore SIGINT, and Python then installs no handler, also in processes begun here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    add_binaries(parser)
    ProcessTest.binaries, rest = parser.parse_known_args()
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result)
    unittest.main(module="__main__", argv=["test", *rest], testRunner=runner)
