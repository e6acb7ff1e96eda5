"""Losses of power: the models of a disk on their own, faults that are planted and must be found, and a small version of
scripts/soak --power."""
import pathlib
import random
import re
import subprocess
import tempfile
import unittest

import power
import processes
from disks import Disk, Fsynced, Names, models
from file_trace import Event, Trace

DISKS = {"aggregator": 24, "archiver": 8, "worker": 8}
ROUNDS = 20
SEED = random.SystemRandom().randrange(1 << 32)


def events_of(*calls):
    """Events that come one after the other, of dictionaries."""
    return [Event(begun=i, **call) for i, call in enumerate(calls)]


def opened(path, handle):
    return {"call": "open", "path": path, "handle": handle, "flags": "O_RDWR|O_CREAT"}


def written(handle, data, offset=0):
    return {"call": "write", "handle": handle, "data": data, "offset": offset}


def fsync(handle):
    return {"call": "fsync", "handle": handle}


CREATE = opened("a.tmp", 1), written(1, b"new")
RENAME = {"call": "rename", "path": "a.tmp", "to": "a"}
OLD = opened("a", 2), written(2, b"old"), fsync(2), opened(".", 3), fsync(3)


class DisksTest(unittest.TestCase):
    def kept(self, model, *calls, seed=1):
        """Bytes by name."""
        disk = Disk()
        for event in events_of(*calls):
            disk.apply(event)
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder) / "disk"
            disk.write_to(target, models(random.Random(seed))[model])
            return {path.name: path.read_bytes() for path in target.iterdir()}

    def kept_by_any_seed(self, model, *calls):
        return [self.kept(model, *calls, seed=seed) for seed in range(60)]

    def test_shows_what_was_issued(self):
        self.assertEqual(self.kept("issued", *OLD, *CREATE, RENAME), {"a": b"new"})

    def test_keeps_old_or_new_file(self):
        replaced = *OLD, *CREATE, fsync(1), RENAME
        for model in ("issued", "fsynced", "names", "torn"):
            for kept in self.kept_by_any_seed(model, *replaced):
                self.assertIn(kept["a"], (b"old", b"new"), model)
            self.assertEqual(self.kept(model, *replaced, fsync(3)), {"a": b"new"}, model)

    def test_loses_name_without_fsync_of_folder(self):
        self.assertEqual(self.kept("fsynced", *CREATE, fsync(1)), {})

    def test_data_are_lost_without_an_fsync_of_their_file(self):
        self.assertEqual(self.kept("fsynced", *CREATE, opened(".", 3), fsync(3)), {"a.tmp": b""})

    def test_leaves_zeros_without_fsync_of_file(self):
        found = {kept["a"] for kept in self.kept_by_any_seed("names", *OLD, *CREATE, RENAME)}
        self.assertEqual(found, {b"", b"\0\0\0"})

    def test_unsynced_writes_are_kept_lost_and_cut_in_any_order(self):
        calls = opened("a", 1), written(1, b"12"), written(1, b"34", offset=2), opened(".", 2), fsync(2)
        found = {kept["a"] for kept in self.kept_by_any_seed("torn", *calls)}
        self.assertLessEqual({b"", b"12", b"1234", b"\0\00034"}, found)

    def test_syncs_only_what_was_over(self):
        disk = Disk()
        for event in [*events_of(opened("a", 1)), Event("write", 1, handle=1, data=b"1"), Event("fsync", 1, handle=1)]:
            disk.apply(event)
        self.assertTrue(disk.find("a").pending())

    def test_loses_folder_without_fsync_of_parent(self):
        calls = {"call": "mkdir", "path": "f"}, opened("f/a", 1), written(1, b"1"), fsync(1), opened("f", 2), fsync(2)
        self.assertEqual(self.kept("fsynced", *calls), {})


class TraceTest(unittest.TestCase):
    def read(self, *lines):
        with tempfile.NamedTemporaryFile("w", suffix=".trace") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            return Trace("/d").read(file.name).events

    def test_calls_of_threads_that_overlap(self):
        events = self.read(
            r'1 openat(AT_FDCWD, "\x2f\x64\x2f\x61", O_RDWR|O_CREAT, 0644) = 5',
            r'1 fsync(5 <unfinished ...>',
            r'2 pwrite64(5, "\x31\x32", 2, 7) = 2',
            r'1 <... fsync resumed>) = 0',
            r'2 unlink("\x2f\x64\x2f\x62") = -1 ENOENT (No such file or directory)')
        self.assertEqual([(event.call, event.begun) for event in events], [("open", 0), ("write", 1), ("fsync", 1)])
        self.assertEqual((events[1].data, events[1].offset), (b"12", 7))

    def test_frees_descriptor_when_close_begins(self):
        events = self.read(
            r'1 openat(AT_FDCWD, "\x2f\x64\x2f\x61", O_RDWR|O_CREAT, 0644) = 5',
            r'1 close(5 <unfinished ...>',
            r'2 openat(AT_FDCWD, "\x2f\x64\x2f\x62", O_RDWR|O_CREAT, 0644) = 5',
            r'1 <... close resumed>) = 0',
            r'2 fsync(5) = 0')
        self.assertEqual(events[-1].path, "b")

    def test_refuses_unknown_change(self):
        with self.assertRaisesRegex(ValueError, "writev of a: is not modelled"):
            self.read(r'1 openat(AT_FDCWD, "\x2f\x64\x2f\x61", O_RDWR|O_CREAT, 0644) = 5', r'1 writev(5, [{iov_base="\x31", iov_len=1}], 1) = 1')


def without_fsyncs(events, path):
    """A disk that never hears of those fsyncs. The numbers of the other events stay."""
    return [Event("send", event.begun) if event.call == "fsync" and re.search(path, event.path) else event for event in events]


def faults(events, moments, model, check):
    """What `check(folder, event)` finds on the disks that the model leaves after these events."""
    disk, found = Disk(), []
    for i, event in enumerate(events):
        disk.apply(event)
        if i not in moments:
            continue
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder) / "disk"
            disk.write_to(target, model)
            try:
                check(target, i)
            except Exception as error:  # also what reading a damaged record raises
                found.append(str(error))
    return found


class PowerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            subprocess.run(["strace", "-o", "/dev/null", "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise unittest.SkipTest(f"strace does not work here: {error}")
        cls.traced = power.TracedRun(processes.ProcessTest.binaries, ROUNDS)
        cls.addClassCleanup(cls.traced.space.close)
        cls.events = cls.traced.record()

    def lost_rounds(self, unsynced=None):
        """What check_kept finds on disks at the moments when a round was told."""
        events = self.events_of("aggregator", unsynced)
        promises = power.Promises(events)
        return faults(events, promises.events(), Fsynced(),
                      lambda disk, i: power.check_kept(disk / "data", promises.rounds(i)))

    def torn_folders(self, unsynced=None):
        """What check_published finds on disks at the moments when a name changed."""
        events = self.events_of("archiver", unsynced)
        published = dict(power.published_folders(events))
        renames = {i for i, event in enumerate(events) if event.call == "rename"}
        return faults(events, renames, Names(random.Random(SEED)), lambda disk, i: power.check_published(disk, published))

    def events_of(self, kind, unsynced):
        return without_fsyncs(self.events[kind], unsynced) if unsynced else self.events[kind]

    def test_keeps_what_was_told(self):
        self.assertEqual(self.lost_rounds(), [])
        events = self.events["aggregator"]
        self.assertGreaterEqual(len(power.Promises(events).rounds(len(events))), ROUNDS)

    def test_finds_missing_fsync_of_folder(self):
        self.assertIn("is lost", self.lost_rounds("data/rounds$")[0])

    def test_finds_missing_fsync_of_record(self):
        self.assertTrue(self.lost_rounds(r"\.record-"))

    def test_published_folders_are_whole(self):
        self.assertEqual(self.torn_folders(), [])

    def test_finds_missing_fsync_of_published_file(self):
        self.assertIn("is not whole", self.torn_folders("model.safetensors")[0])

    def test_processes_go_on_with_what_is_left(self):
        for kind, check in power.CHECKS.items():
            events = self.events[kind]
            self.assertEqual(power.lose_power(kind, check(self.traced, events), events, DISKS[kind], SEED), 0, kind)


if __name__ == "__main__":
    processes.main()
