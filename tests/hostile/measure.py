"""Measures the cost of an attack: memory, threads and processor time from /proc, rounds from the log, answers of /healthz."""
import os
import pathlib
import re
import signal
import socket
import threading
import time

STEP_SECONDS, HEALTH_SECONDS = 0.05, 1.0
MOST_MEMORY_MB = 6000  # beyond it the process is ended: the machine has other users
TICKS = os.sysconf("SC_CLK_TCK")
COMMITTED = re.compile(rb"round committed round=(\d+)")


def resident_mb(pid):
    return _status(pid, "VmRSS") / 1024


def _status(pid, key):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    return 0


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def answer_seconds(address, path="/healthz", limit=10):
    """Time until the whole answer of an HTTP GET was there; None when there was none, or not 200."""
    begin = time.monotonic()
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), limit) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            data = b""
            while time.monotonic() - begin < limit:
                chunk = connection.recv(1 << 16)
                if not chunk:
                    break
                data += chunk
    except OSError:
        return None
    return time.monotonic() - begin if data.startswith(b"HTTP/1.1 200") else None


class Rounds:
    """Committed rounds of an aggregator's log, counted as the file grows."""

    def __init__(self, log_path):
        self._path, self._at, self._rest = log_path, 0, b""
        self.count, self.lines, self.newest = 0, 0, -1

    def look(self):
        with open(self._path, "rb") as log:
            log.seek(self._at)
            new = log.read()
        self._at += len(new)
        whole, _, self._rest = (self._rest + new).rpartition(b"\n")
        self.lines += whole.count(b"\n") + bool(whole)
        for number in COMMITTED.findall(whole):
            self.count, self.newest = self.count + 1, int(number)
        return self.count


class Window(threading.Thread):
    """Measures an aggregator from `start()` until `stop()`."""

    def __init__(self, aggregator):
        super().__init__(daemon=True)
        self._pid, self._http = aggregator.child.pid, aggregator.http()
        self._rounds = Rounds(aggregator.log_path)
        self._ended = threading.Event()
        self._rounds.look()
        self._first, self._first_lines = self._rounds.count, self._rounds.lines
        self._begin, self._cpu = time.monotonic(), processor_seconds(self._pid)
        self.memory_before = self.memory_peak = self.memory_after = resident_mb(self._pid)
        self.threads, self.threads_before = 0, _status(self._pid, "Threads")
        self.health, self.silence, self.alive = [], 0.0, True
        self._samples = [(self._begin, self._cpu, self._first)]  # (time, processor seconds, rounds)
        self._prober = threading.Thread(target=self._probe, daemon=True)

    def run(self):
        self._prober.start()
        last_round, count = time.monotonic(), self._first
        while not self._ended.wait(STEP_SECONDS):
            try:
                self.memory_after = resident_mb(self._pid)
                self.memory_peak = max(self.memory_peak, self.memory_after)
                self.threads = max(self.threads, _status(self._pid, "Threads"))
            except OSError:
                self.alive = False
                break
            if self.memory_after > MOST_MEMORY_MB:
                os.kill(self._pid, signal.SIGKILL)
            now = time.monotonic()
            if self._rounds.look() > count:
                last_round, count = now, self._rounds.count
            self.silence = max(self.silence, now - last_round)
            self._samples.append((now, processor_seconds(self._pid), self._rounds.count))

    def _probe(self):
        while not self._ended.is_set():
            self.health.append(answer_seconds(self._http))
            self._ended.wait(0.3)

    def stop(self):
        self._ended.set()
        self.join()
        self.seconds = time.monotonic() - self._begin
        try:
            self.processor = processor_seconds(self._pid) - self._cpu
        except OSError:
            self.alive, self.processor = False, 0.0
        self._rounds.look()
        self.rounds = self._rounds.count - self._first
        self.lines = self._rounds.lines - self._first_lines - self.rounds
        self._prober.join()
        return self

    def second_half(self):
        """(cores, rounds a second) of the second half: what an attack costs for as long as it goes on."""
        end = self._samples[-1]
        middle = next(sample for sample in self._samples if sample[0] >= (self._begin + end[0]) / 2)
        seconds = max(end[0] - middle[0], STEP_SECONDS)
        return (end[1] - middle[1]) / seconds, (end[2] - middle[2]) / seconds

    def figures(self):
        """The values of a row of the table."""
        late = sum(seconds is None or seconds > HEALTH_SECONDS for seconds in self.health)
        slowest = None if None in self.health else max(self.health, default=0.0)
        late_cores, late_rounds = self.second_half()
        return {"memory_before_mb": round(self.memory_before), "memory_peak_mb": round(self.memory_peak),
                "memory_after_mb": round(self.memory_after), "threads_before": self.threads_before, "threads": self.threads,
                "cores": round(self.processor / self.seconds, 3), "second_half": (round(late_cores, 3), round(late_rounds, 1)),
                "rounds": self.rounds, "seconds": round(self.seconds, 1),
                "rounds_per_second": round(self.rounds / self.seconds, 1), "longest_silence_seconds": round(self.silence, 1),
                "healthz_seconds": slowest if slowest is None else round(slowest, 2), "healthz_late": late, "log_lines": self.lines,
                "alive": self.alive}
