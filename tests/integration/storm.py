"""A run with all kinds of faults: an aggregator, workers behind their own proxies, an archiver, and faults that a seed draws.
The seed fixes which faults come in which order, not when exactly a process meets them."""
import collections
import random
import signal
import time

from processes import Workspace, until
from proxy import KINDS

BOUND_SECONDS = 60  # nothing may take longer: a round, a start, an end
STEADY, GUESTS = ("a", "b", "c"), ("d", "e")
RUN = {"rounds": 10_000_000, "start_workers": 3, "min_workers": 1, "round_deadline": "0.4s", "probation_rounds": 2,
       "kept_per_block": 8}
METHODS = (("UploadUpdate", "up"), ("UploadUpdate", "down"), ("SubscribeRounds", "down"), ("SubscribeRounds", "up"),
           ("Heartbeat", "up"), ("Heartbeat", "down"), ("Join", "down"), ("DownloadSnapshot", "down"))


class Violation(AssertionError):
    pass


class Party:
    """A process of the storm that is started again whenever it ended; None while it is away."""

    def __init__(self, storm, name):
        self.storm, self.name = storm, name
        self.proxy = storm.space.start_proxy(None)
        self.process = None
        self.starts = 0
        self.frozen = False

    def start(self):
        self.starts += 1
        self.process = self.launch()

    def launch(self):
        raise NotImplementedError

    def check_alive(self):
        if self.process is not None:
            self.process.alive()

    def kill(self):
        self.thaw()
        self.process.kill()
        self.storm.forget(self.process)
        self.process = None

    def freeze(self):
        self.process.freeze()
        self.frozen = True

    def thaw(self):
        if self.frozen:
            self.process.thaw()
        self.frozen = False


class WorkerParty(Party):
    def launch(self):
        space = self.storm.space
        return space.start_worker(self.name, self.proxy.address, "--state_dir", space.folder / f"state-{self.name}",
                                  "--state_interval_rounds", 5, log_name=f"{self.name}-{self.starts}")

    def leave(self):
        """SIGTERM; its summary."""
        self.thaw()
        process, self.process = self.process, None
        process.signal(signal.SIGTERM)
        code = process.exit_code(BOUND_SECONDS)
        self.storm.forget(process)
        if code == -signal.SIGTERM and not process.log():
            return None  # so early that it had not begun yet
        if code != 128 + signal.SIGTERM:
            raise Violation(f"{process.name} ended with {code} after SIGTERM:\n{process.log()[-4000:]}")
        return process.summary() if process.has_summary() else None


class ArchiverParty(Party):
    def launch(self):
        return self.storm.space.start_archiver(self.proxy.address, "--snapshot_interval_rounds", 50, log_name="archiver")


class Storm:
    def __init__(self, binaries, seed):
        self.random = random.Random(seed)
        self.space = Workspace(binaries)
        self.counts = collections.Counter()
        self.later = []  # (when, what) in no order
        self.settled = []  # (process, worker, summary) of those that left
        self.aggregator = None
        self.frozen = False
        self.workers = [WorkerParty(self, name) for name in STEADY + GUESTS]
        self.archiver = ArchiverParty(self, "archiver") if binaries.archiver else None
        self.parties = self.workers + ([self.archiver] if self.archiver else [])

    def forget(self, process):
        self.space.processes.remove(process)

    # Begin and end.
    def start(self):
        flags = ("--run", self.space.write_run(**RUN), "--model", self.space.init_model())
        self.start_aggregator(*flags)
        for party in self.parties:
            party.start()
        self.await_progress(5)

    def start_aggregator(self, *flags):
        self.aggregator = self.space.start_aggregator("--lease", "3s", "--drain_grace", "2s", "--ring_bytes", 1 << 20, *flags)
        for party in self.parties:
            party.proxy.target = self.aggregator.grpc  # another port each time

    def calm(self):
        """Ends all faults and waits for all processes."""
        for _, act in self.later:
            act()
        self.later = []
        for party in self.parties:
            party.proxy.heal()
            if party.process is None:
                party.start()

    def await_progress(self, rounds):
        at = self.aggregator.round()
        until(lambda: self.aggregator.alive() and self.aggregator.round() >= at + rounds, f"{rounds} rounds from {at} on",
              BOUND_SECONDS)

    def await_everyone(self):
        """Waits until the run is paused, which the round that was open still comes before, and every worker has applied all its
        rounds; the first round that is not committed."""
        def level():
            self.aggregator.alive()
            if self.aggregator.metric("distro_aggregator_run_state", state="paused") != 1:
                return 0
            head = self.aggregator.round()
            at = [worker.process.applied() for worker in self.workers if worker.process.alive()]
            return head if at == [head] * len(at) else 0
        return until(level, "all workers have applied every round", BOUND_SECONDS)

    def kills(self):
        return sum(count for name, count in self.counts.items() if name.startswith("kill"))

    # One fault.
    def strike(self):
        faults = {self.kill_aggregator: 50, self.kill_worker: 20, self.kill_archiver: 8, self.restart_aggregator: 3,
                  self.freeze: 8, self.break_link: 20, self.stall_link: 6, self.slow_link: 6, self.leave: 4, self.join: 8}
        self.run_later()
        for party in self.parties:
            party.check_alive()
        self.random.choices(list(faults), faults.values())[0]()

    def run_later(self):
        due = [entry for entry in self.later if entry[0] <= time.monotonic()]
        self.later = [entry for entry in self.later if entry not in due]
        for _, act in due:
            act()

    def after(self, longest, act):
        self.later.append((time.monotonic() + self.random.uniform(0.05, longest), act))

    def present(self):
        return [worker for worker in self.workers if worker.process is not None]

    def kill_aggregator(self):
        self.thaw_aggregator()
        self.aggregator.alive()
        self.aggregator.kill()
        self.forget(self.aggregator)
        self.start_aggregator()
        self.counts["kill -9 of the aggregator"] += 1

    def restart_aggregator(self):
        self.thaw_aggregator()
        self.aggregator.signal(signal.SIGTERM)
        code = self.aggregator.exit_code(BOUND_SECONDS)
        if code != 0:
            raise Violation(f"the aggregator ended with {code} after SIGTERM:\n{self.aggregator.log()[-4000:]}")
        self.forget(self.aggregator)
        self.start_aggregator()
        self.counts["SIGTERM of the aggregator"] += 1

    def kill_worker(self):
        if not self.present():
            return
        worker = self.random.choice(self.present())
        worker.kill()
        worker.start()
        self.counts["kill -9 of a worker"] += 1

    def kill_archiver(self):
        if self.archiver:
            self.archiver.kill()
            self.archiver.start()
            self.counts["kill -9 of the archiver"] += 1

    def freeze(self):
        party = self.random.choice([None] + [party for party in self.parties if party.process is not None])
        if party is None:
            if not self.frozen:
                self.aggregator.freeze()
                self.frozen = True
                self.after(1.5, self.thaw_aggregator)
        elif not party.frozen:
            party.freeze()
            self.after(2, party.thaw)
        self.counts["SIGSTOP"] += 1

    def thaw_aggregator(self):
        if self.frozen:
            self.aggregator.thaw()
        self.frozen = False

    def break_link(self):
        proxy = self.random.choice(self.parties).proxy
        kind = self.random.choice([kind for kind in KINDS if kind != "stall"])
        proxy.arm(kind, *self.random.choice(METHODS), frame=self.random.randrange(3))
        self.counts[f"link: {kind} in a frame"] += 1

    def stall_link(self):
        proxy = self.random.choice(self.parties).proxy
        proxy.break_all("stall")
        self.after(2, proxy.release)
        self.counts["link: stall"] += 1

    def slow_link(self):
        proxy = self.random.choice(self.parties).proxy
        proxy.delay, proxy.bytes_per_second = 0.02, self.random.choice((10_000, 40_000))
        self.after(3, proxy.heal)
        self.counts["link: slow"] += 1

    def leave(self):
        guests = [worker for worker in self.present() if worker.name in GUESTS]
        if guests:
            self.settle(self.random.choice(guests))
            self.counts["leave"] += 1

    def join(self):
        away = [worker for worker in self.workers if worker.process is None]
        if away:
            self.random.choice(away).start()
            self.counts["join"] += 1

    def settle(self, worker):
        """Lets a worker leave; its counts of updates must agree with the log."""
        name = worker.process.name
        summary = worker.leave()
        if summary is not None:
            self.settled.append((name, worker.name, summary))
