"""scripts/soak --power: traces what the processes of a short run do to their disks (file_trace.py), makes the disks that losses of
power would leave (disks.py), and starts the process again on each (docs/reliability.md)."""
import argparse
import collections
import functools
import os
import random
import re
import sys
import time

import processes
from disks import Disk, Issued, models
from file_trace import Trace, await_end, tracer
from processes import Worker, Workspace, until
from records import FOOTER, LogChecker

RUN = {"rounds": 100000, "start_workers": 1}
RECORD = re.compile(r"data/rounds/(\d{10})\.record")
HEADER_BEGINS = 64  # bytes: round, epoch and more, so no other message has them


class TracedRun:
    """A run with all that its processes write: rounds, snapshots of an archiver, packs, a pause, a second start of the aggregator."""

    def __init__(self, binaries, rounds):
        self.space, self.rounds = Workspace(binaries), rounds
        self.flags = "--run", self.space.write_run(**RUN), "--model", self.space.init_model()
        self.address = self.space.hold_address()
        self.traces = {kind: Trace(self.disk(kind)) for kind in ("aggregator", "archiver", "worker")}
        for kind in self.traces:
            self.disk(kind).mkdir()

    def disk(self, kind):
        return self.space.folder / f"disk-{kind}"

    def record(self):
        """Events by kind of process."""
        clients = (self.client("archiver", archiver_command(self.space.binaries, self.address, self.disk("archiver"))),
                   self.client("worker", worker_command(self.space, self.address, self.disk("worker"))))
        for flags, rounds in ((self.flags, self.rounds // 2), ((), self.rounds)):
            self.aggregator(flags, rounds)
        for client in clients:
            client.kill()
            self.read(client.name, client)
        return {kind: trace.events for kind, trace in self.traces.items()}

    def client(self, kind, command):
        return self.space.start(kind, [*tracer(self.space.folder / f"{kind}.trace"), *command])

    def aggregator(self, flags, rounds):
        """One that is killed when it has so many rounds."""
        aggregator = self.space.start_aggregator(*flags, data_dir=self.disk("aggregator") / "data", listen=self.address,
                                                 prefix=tracer(self.space.folder / "aggregator.trace"))
        for command in ("pause", "resume"):
            self.space.distroctl("run", command, self.address, "--insecure")
        aggregator.await_round(rounds)
        aggregator.kill()
        self.read("aggregator", aggregator)

    def read(self, kind, process):
        path = self.space.folder / f"{kind}.trace"
        await_end(path, process.child.pid)
        self.traces[kind].read(path)

    @functools.cached_property
    def paused(self):
        """The aggregator again, with the whole log, for clients that start on what is left of their disks."""
        aggregator = self.space.start_aggregator(data_dir=self.disk("aggregator") / "data", listen=self.address)
        self.space.distroctl("run", "pause", self.address, "--insecure")
        return aggregator


def archiver_command(binaries, address, disk):
    return [binaries.archiver, "--aggregator", address, "--data_dir", disk / "archive", "--publish_dir", disk / "published",
            "--insecure", "--snapshot_interval_rounds", 4]


def worker_command(space, address, disk):
    return [space.binaries.worker, "--aggregator", address, "--data", space.text, "--name", "a", "--insecure",
            "--state_dir", disk / "state", "--state_interval_rounds", 3]


class Promises:
    """What the aggregator has told by an event: that the run exists, by its first answer; a round, when it sends the header."""

    def __init__(self, events):
        self._rounds = {}  # (event that told it, chain hash) by round
        sent = [(i, event.data) for i, event in enumerate(events) if event.call == "send"]
        self.first_answer = sent[0][0]
        for number, (begin, chain_hash) in stored_headers(events):
            told = next((i for i, data in sent if begin in data), None)
            if told is not None:
                self._rounds[number] = told, chain_hash

    def events(self):
        return {event for event, _ in self._rounds.values()}

    def rounds(self, event):
        """Chain hash by round."""
        return {number: chain_hash for number, (told, chain_hash) in self._rounds.items() if told <= event}

    def has_run(self, event):
        return event >= self.first_answer


def stored_headers(events):
    """(round, (begin of the header, chain hash)) of each record, as it gets its name."""
    disk = Disk()
    for event in events:
        disk.apply(event)
        name = RECORD.fullmatch(event.to)
        if event.call == "link" and name:
            record = Issued().file(disk.find(event.to))
            _, _, header_bytes, _, chain_hash, _, _ = FOOTER.unpack(record[-FOOTER.size:])
            end = len(record) - FOOTER.size
            yield int(name[1]), (record[end - header_bytes:end][:HEADER_BEGINS], chain_hash)


def check_kept(data_dir, rounds):
    """The log of a folder has these rounds, whatever came after them."""
    log = LogChecker(data_dir)
    log.follow()
    for number, chain_hash in rounds.items():
        if number >= len(log.hashes):
            raise AssertionError(f"round {number} was told and is lost: the log ends before round {len(log.hashes)}")
        if log.hashes[number] != chain_hash:
            raise AssertionError(f"round {number} is another one than was told")


class AggregatorCheck:
    """An aggregator starts on the disk without help, has every round that was told, and commits further ones."""

    def __init__(self, run, events):
        self.run, self.promises = run, Promises(events)
        self.told = self.promises.events()

    def check(self, space, event):
        space.data_dir = space.folder / "disk" / "data"
        aggregator = space.start_aggregator(*(() if self.promises.has_run(event) else self.run.flags))
        space.start_worker("a", aggregator.grpc)
        space.distroctl("run", "resume", aggregator.grpc, "--insecure")
        aggregator.await_round(aggregator.round() + 2)
        space.distroctl("log", "verify", "--data_dir", space.data_dir)
        check_kept(space.data_dir, self.promises.rounds(event))


class ArchiverCheck:
    """Published folders are whole, and an archiver goes on with its own copy."""
    told = frozenset()

    def __init__(self, run, events):
        self.run, self.published = run, dict(published_folders(events))

    def check(self, space, event):
        check_published(space.folder / "disk", self.published)
        archiver = space.start("archiver", [*archiver_command(space.binaries, self.run.paused.grpc, space.folder / "disk"), "--once"])
        assert archiver.exit_code() == 0, "the archiver failed"
        # A copy may be older than the rounds that the log has dropped since.
        aside = [why for why in re.findall(r'set aside reason="([^"]*)', archiver.log()) if "is before the log" not in why]
        assert not aside, f"the archiver's own copy is damaged: {aside}"


class WorkerCheck:
    """A worker goes on with its state."""
    told = frozenset()

    def __init__(self, run, events):
        self.run = run

    def check(self, space, event):
        worker = Worker("a", worker_command(space, self.run.paused.grpc, space.folder / "disk"), space.folder)
        space.processes.append(worker)
        until(lambda: worker.alive() and worker.applied() >= self.run.paused.round(), "the worker has every round")
        aside = space.folder / "disk" / "state" / "worker.state.aside"
        assert not aside.exists(), "the worker's state is damaged"


CHECKS = {"aggregator": AggregatorCheck, "archiver": ArchiverCheck, "worker": WorkerCheck}


def check_published(disk, published):
    """Each published folder that is there is whole."""
    for folder in disk.glob("published/round-*[0-9]"):
        found = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert found == published[folder.name], f"{folder.name} is not whole: {[*found]}"


def published_folders(events):
    """(name, bytes by name of a file) of each folder, as it gets its name."""
    disk = Disk()
    for event in events:
        disk.apply(event)
        folder, name = os.path.split(event.to)
        if folder == "published" and not name.endswith(".removed"):
            files = disk.find(event.to).names
            yield name, {file: Issued().file(versions[-1][1]) for file, versions in files.items() if versions[-1][1]}


class Losses:
    """The losses of power during the events of a trace, each with a model of the disk."""

    def __init__(self, events, told, seed):
        self.events, self.told = events, told  # the events that are answers that matter
        self.random = random.Random(seed)
        self.models = models(self.random)

    def possible(self):
        """(event after which, model): all models only where they differ."""
        disk = Disk()
        for i, event in enumerate(self.events):
            disk.apply(event)
            if event.call != "send" or i in self.told:
                yield from ((i, name) for name in (self.models if disk.pending() else ("issued",)))

    def drawn(self, count):
        """(event, model, disk at that event) of so many."""
        possible = list(self.possible())
        drawn = collections.defaultdict(list)
        for i, name in self.random.sample(possible, min(count, len(possible))):
            drawn[i].append(name)
        disk = Disk()
        for i, event in enumerate(self.events):
            disk.apply(event)
            yield from ((i, name, disk) for name in drawn[i])

    def describe(self, i, name):
        before = "\n".join(f"  {event.call} {event.path} {event.to}" for event in self.events[max(0, i - 7):i + 1])
        return f"power lost after event {i}, model {name}; the last events:\n{before}"


def fault_of(check, losses, i, name, disk):
    """What is wrong on this disk; none: ''."""
    space = Workspace(check.run.space.binaries)
    try:
        disk.write_to(space.folder / "disk", losses.models[name])
        check.check(space, i)
        return ""
    except Exception as error:  # also what reading a damaged record raises
        return f"{losses.describe(i, name)}\n{type(error).__name__}: {error}\n{space.logs()}"
    finally:
        space.close()


def lose_power(kind, check, events, count, seed):
    """Checks so many disks of a kind of process; the number of faults."""
    begin, counts, faults = time.monotonic(), collections.Counter(), 0
    losses = Losses(events, check.told, seed)
    for i, name, disk in losses.drawn(count):
        fault = fault_of(check, losses, i, name, disk)
        counts[name] += 1
        if fault:
            faults += 1
            print(f"FAULT {faults}: {fault}", flush=True)
        if counts.total() % 20 == 0:
            print(f"{kind}: {counts.total()} of {count} disks, {time.monotonic() - begin:.0f} s, {faults} faults", flush=True)
    calls = collections.Counter(event.call for event in events if event.call != "send")
    print(f"{kind}, seed {seed}, {time.monotonic() - begin:.0f} s: {faults} faults on {counts.total()} disks "
          f"({listed(counts)}) from {calls.total()} calls ({listed(calls)})", flush=True)
    return faults


def listed(counts):
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def lose_power_everywhere(run, disks, seed):
    """So many disks of the aggregator, a quarter of it of each client."""
    events = run.record()
    return sum(lose_power(kind, check(run, events[kind]), events[kind], disks if kind == "aggregator" else -(-disks // 4), seed)
               for kind, check in CHECKS.items())


def main():
    parser = argparse.ArgumentParser()
    processes.add_binaries(parser)
    parser.add_argument("--disks", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    run = TracedRun(arguments, rounds=30)
    try:
        faults = lose_power_everywhere(run, arguments.disks, arguments.seed)
    finally:
        run.space.close()
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
