"""A run on this machine: an aggregator and several processes of one program."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
from types import FrameType
from typing import Any, NoReturn

from ._files import open_to_read
from ._place import Place

_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 60  # for the workers, once they were asked to end
_MOST_WORKERS = 64
_LIBC = ctypes.CDLL(None)


class Refused(Exception):
    """The run cannot be started as told; says why and what to do."""


class LocalRun:
    """Starts and ends the processes.

    config     run.json; `start_workers` and `min_workers` become what fits the number of workers
    model      folder of the run's initial parameters
    program    of a worker, with its arguments; a module's name if `module`

    Refused: an argument that cannot be."""

    def __init__(
        self,
        aggregator: str | None,
        config: pathlib.Path,
        model: pathlib.Path,
        workers: int,
        rounds: int | None,
        program: pathlib.Path,
        module: bool,
        arguments: list[str],
    ) -> None:
        if aggregator is None or not os.access(aggregator, os.X_OK):
            raise Refused(
                f"--aggregator_program: {aggregator or 'distro-aggregator'} is not there: install the archive or the "
                "package of the programs (docs/deploy.md), and put them on PATH or name the file"
            )
        if not 1 <= workers <= _MOST_WORKERS:
            raise Refused(f"--workers: {workers} is not 1 to {_MOST_WORKERS}")
        if not model.is_dir():
            raise Refused(
                f"--model: {model} is no folder: make it with distro_train.save_initial(model, {str(model)!r})"
            )
        if not module and not program.exists():
            raise Refused(f"{program}: there is no such program; a module's name comes behind -m")
        self._config = _config_of(config, workers, rounds)
        self._aggregator = aggregator
        self._model = model
        self._workers = workers
        self._command = [sys.executable, *(["-m"] if module else []), str(program), *arguments]
        self._children: dict[str, _Child] = {}

    def run(self) -> int:
        """Returns the exit code of the command."""
        signal.signal(signal.SIGTERM, _interrupt)
        with tempfile.TemporaryDirectory(prefix="distro-train-local-") as folder:
            try:
                return self._run(pathlib.Path(folder))
            except KeyboardInterrupt:
                _say("interrupted: the workers leave the run")
                self._end_workers()
                return 130
            finally:
                for child in self._children.values():
                    child.end()

    def _run(self, folder: pathlib.Path) -> int:
        begin = time.monotonic()
        address = self._start_aggregator(folder)
        if address is None:
            return 2
        places = [Place(address, f"w{i + 1}", str(folder), saves=i == 0) for i in range(self._workers)]
        threads = str(max(1, (os.cpu_count() or 1) // self._workers))
        for place in places:
            environment = {"OMP_NUM_THREADS": threads, **os.environ, "PYTHONUNBUFFERED": "1", **place.environment()}
            self._children[place.name] = _Child(place.name, self._command, environment)
        for child in self._children.values():
            child.begin_to_print()
        failed = self._await([self._children[place.name] for place in places])
        if failed is not None:
            _say(f"{failed.name} ended with {failed.code()}: the others are stopped")
            self._end_workers()
            return 1
        return _report([(place, _readings(place)) for place in places], time.monotonic() - begin)

    def _start_aggregator(self, folder: pathlib.Path) -> str | None:
        """Its address; None if it has ended instead, and said why."""
        config, ports = folder / "run.json", folder / "ports"
        config.write_text(json.dumps(self._config))
        where = ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--port_file", str(ports), "--insecure"]
        what = ["--run", str(config), "--model", str(self._model), "--data_dir", str(folder / "data")]
        command = [self._aggregator, *where, *what, "--log_level", "error"]
        child = self._children["aggregator"] = _Child("aggregator", command, dict(os.environ))
        while not ports.exists():
            if child.code() is not None:
                child.end()  # which prints the rest of what it said
                return None
            time.sleep(_POLL_SECONDS)
        addresses = dict(part.split("=", 1) for part in ports.read_text().split())
        _say(f"status page: http://{addresses['http']}/")
        return addresses["grpc"]

    def _await(self, workers: list[_Child]) -> _Child | None:
        """Returns the first that fails; None if all end well."""
        while True:
            codes = [worker.code() for worker in workers]
            failed = [worker for worker, code in zip(workers, codes) if code not in (None, 0)]
            aggregator = self._children["aggregator"]
            if failed or aggregator.code() is not None:
                return failed[0] if failed else aggregator
            if None not in codes:
                return None
            time.sleep(_POLL_SECONDS)

    def _end_workers(self) -> None:
        """As Ctrl-C does. A second one kills them."""
        workers = [child for name, child in self._children.items() if name != "aggregator"]
        for worker in workers:
            worker.signal(signal.SIGINT)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        try:
            for worker in workers:
                worker.wait(deadline)
        except KeyboardInterrupt:
            _say("interrupted again: the workers are killed")


class _Child:
    """A process whose lines are printed behind its name."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        self.name = name
        # A session of its own: Ctrl-C reaches only us, and we tell the others in their order.
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_begin_as_child,
        )
        self._printer: threading.Thread | None = None

    def begin_to_print(self) -> None:
        """After the last process was started: one that is forked beside threads may meet a lock that nobody frees."""
        self._printer = threading.Thread(target=self._print)
        self._printer.start()

    def code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, deadline: float) -> None:
        """Until it ends, or the monotonic clock reaches `deadline`."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _say(f"{self.name} has not ended within {_PATIENCE_SECONDS} s, and is killed")

    def end(self) -> None:
        if self.code() is None:
            self._process.kill()
        self._process.wait()
        if self._printer is None:
            self._print()
        else:
            self._printer.join()

    def _print(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            _say(line.rstrip("\n"), self.name)


def _config_of(path: pathlib.Path, workers: int, rounds: int | None) -> dict[str, Any]:
    try:
        with open_to_read(path) as file:
            config = json.loads(file.read().decode("utf-8-sig"))
    except OSError as error:
        raise Refused(f"--run: {path}: {error.strerror}; docs/run_configuration.md says what it holds") from None
    except ValueError as error:
        raise Refused(f"--run: {path}: is no JSON: {error}") from None
    if not isinstance(config, dict):
        raise Refused(f"--run: {path}: is no JSON object")
    fitting = {"start_workers": workers}
    fewest = config.get("min_workers")
    if isinstance(fewest, int) and fewest > workers:
        fitting["min_workers"] = workers
    if rounds is not None:
        fitting["rounds"] = rounds
    changed = [f"{key} {value}" for key, value in fitting.items() if config.get(key) not in (None, value)]
    if changed:
        _say(f"in the place of what {path} says: {', '.join(changed)}")
    return {**config, **fitting}


def _readings(place: Place) -> dict[str, Any] | None:
    """None: the program has not taken part in the run."""
    try:
        readings: dict[str, Any] = json.loads(place.readings_path().read_text())
    except FileNotFoundError:
        return None
    return readings


def _report(workers: list[tuple[Place, dict[str, Any] | None]], seconds: float) -> int:
    _say(f"{'worker':<8}{'round':>8}{'loss':>10}{'held-out':>10}{'sent':>12}{'received':>12}")
    states = set()
    for place, readings in workers:
        if readings is None:
            _say(f"{place.name} ended without a run: the program has not called distro_train.connect")
            return 1
        states.add(readings["state_hash"])
        losses = "".join(f"{_number(readings[key]):>10}" for key in ("training_loss", "last_evaluation_loss"))
        sent, received = (f"{readings[key] / 1e6:.2f} MB" for key in ("sent_payload_bytes", "received_payload_bytes"))
        _say(f"{place.name:<8}{readings['next_round']:>8}{losses}{sent:>12}{received:>12}")
    if len(states) > 1:
        _say("the workers ended with different parameters: those that ended earlier are of an earlier round")
        return 1
    _say(f"{seconds:.0f} s; every worker has the parameters {states.pop()}")
    return 0


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _say(line: str, who: str = "local") -> None:
    print(f"{who:<10} | {line}", file=sys.stderr, flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _begin_as_child() -> None:
    """In the new process. PR_SET_PDEATHSIG: nothing is left when this one is killed. A shell starts what it runs in the
    background with SIGINT ignored, and we ask workers to end by it."""
    _LIBC.prctl(1, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
