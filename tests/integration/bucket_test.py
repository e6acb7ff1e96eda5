"""A run whose log is in a bucket: other machines go on with it, two aggregators never both write it, and faults of the store only
delay."""
import filecmp
import itertools
import os
import pathlib
import re
import shutil
import sys
import time
import unittest
import unittest.mock
import urllib.error
import urllib.request
import uuid

import processes
from object_store import ObjectStore
from processes import ProcessTest, until

ROUNDS = 12
STANDBY = ("--standby", "--takeover_after", "2s")


class BucketTest(ProcessTest):
    def setUp(self):
        super().setUp()
        self.use_store()
        self.address = self.workspace.hold_address()

    def use_store(self):
        self.log = ("--log", "s3://runs/one/two")
        self.store = ObjectStore()
        self.addCleanup(self.store.close)
        environment = unittest.mock.patch.dict(os.environ, self.store.environment())
        environment.start()
        self.addCleanup(environment.stop)

    def create(self, *flags, **overrides):
        return self.workspace.create_run(*self.log, *flags, listen=self.address, **{"start_workers": 2, "rounds": ROUNDS, **overrides})

    def another(self, name, *flags):
        """An aggregator of another machine: it has no folder."""
        return self.workspace.start_aggregator(*self.log, *flags, log_name=name, data_dir=self.workspace.folder / name,
                                               listen=self.address)

    def start_standby(self, name, *flags, listen=None):
        """Returns while it waits."""
        command = self.workspace.aggregator_command(*self.log, *STANDBY, *flags, data_dir=self.workspace.folder / name, listen=listen or self.address)
        process = self.workspace.start(name, command)
        process.find("standby: another aggregator leads")
        return process

    def start_workers(self):
        return [self.workspace.start_worker(f"w{i}", self.address) for i in range(2)]

    def expect_whole(self, aggregator, workers, rounds=ROUNDS):
        """The run ended, workers agree, and the log of the aggregator's machine and the bucket give their parameters."""
        parameters = self.finish(workers)
        self.assertEqual(aggregator.round(), rounds)
        aggregator.signal(15)
        self.assertEqual(aggregator.exit_code(), 0)
        copy = self.workspace.folder / "whole"
        self.workspace.distroctl("log", "copy", "--from", self.log[1], "--to", copy)
        self.workspace.data_dir = copy
        self.assertEqual(self.workspace.replay()["state"], parameters)

    def hash_of(self, folder):
        return re.search(r"hash +(\w+)", self.workspace.distroctl("log", "verify", "--data_dir", folder))[1]


class OtherMachine:
    """Also of a real store."""

    def test_goes_on_where_a_machine_was_lost(self):
        first = self.create(round_deadline="60s")
        workers = self.start_workers()
        first.await_round(4)
        first.kill()
        shutil.rmtree(self.workspace.data_dir)
        second = self.another("second")
        self.expect_whole(second, workers)

    def test_copies_out_and_in(self):
        first = self.create()
        self.finish(self.start_workers())
        first.signal(15)
        self.assertEqual(first.exit_code(), 0)
        expected = self.hash_of(self.workspace.data_dir)
        self.assertEqual(self.hash_of(self.log[1]), expected)
        for command in (("ls",), ("show", "3"), ("replay",)):
            expected_text = self.workspace.distroctl("log", *command, "--data_dir", self.workspace.data_dir)
            text = self.workspace.distroctl("log", *command, "--data_dir", self.log[1])
            self.assertEqual(text[:len(expected_text)], expected_text)
        self.assertIn(f"the copy of {self.log[1]}: round 9999", self.workspace.distroctl("log", "show", "9999", "--data_dir", self.log[1], code=2))
        self.assertIn(f"the copy of {self.log[1]}: --from: 9",
                      self.workspace.distroctl("log", "ls", "--from", "9", "--to", "8", "--data_dir", self.log[1], code=2))
        self.assertEqual(list(self.workspace.folder.glob("distroctl-*")), [])
        self.assertIn("has no run", self.workspace.distroctl("log", "ls", "--data_dir", self.log[1] + "-none", code=2))
        copy = self.workspace.folder / "copy"
        self.workspace.distroctl("log", "copy", "--from", self.log[1], "--to", copy)
        self.assertEqual(self.hash_of(copy), expected)
        self.workspace.distroctl("log", "copy", "--from", copy, "--to", self.log[1] + "-other")
        self.assertIn("choose another prefix",
                      self.workspace.distroctl("log", "copy", "--from", copy, "--to", self.log[1] + "-other", code=3))
        again = self.workspace.folder / "again"
        self.workspace.distroctl("log", "copy", "--from", self.log[1] + "-other", "--to", again)
        self.assertEqual(self.hash_of(again), expected)

    def test_keeps_snapshots_and_drops_old_rounds(self):
        first = self.create(round_deadline="60s", rounds=40)
        archiver = self.workspace.start_archiver(self.address, "--snapshot_interval_rounds", 8)
        workers = self.start_workers()
        until(lambda: archiver.alive() and (archiver.metric("distro_archiver_snapshots_uploaded_total") or 0) >= 3,
              "three snapshots stored")
        first.kill()
        shutil.rmtree(self.workspace.data_dir)
        second = self.another("second")
        self.assertFalse((self.workspace.folder / "second/rounds/0000000001.record").exists(), "it is in a pack")
        self.expect_whole(second, workers, rounds=40)

    def test_overwrites_no_folder_by_an_empty_bucket(self):
        self.workspace.create_run().kill()
        port_file = self.workspace.folder / "none"
        command = self.workspace.aggregator_command("--port_file", port_file, *self.log)
        process = self.workspace.start("refused", command)
        self.assertEqual(process.exit_code(), 3)
        self.assertIn("distroctl log copy --from", process.log())


class Takeover:
    """Also of a real store."""

    def test_takes_over_from_one_that_is_killed(self):
        first = self.create(*STANDBY, round_deadline="60s")
        standby = self.start_standby("standby")
        self.assertEqual(self.get(standby, "/healthz"), 200)
        self.assertEqual(self.get(standby, "/readyz"), 503)
        workers = self.start_workers()
        first.await_round(4)
        first.kill()
        standby.find("taking over")
        self.finish(workers)
        standby.signal(15)
        self.assertEqual(standby.exit_code(), 0)

    def get(self, standby, path):
        address = standby.find(r"standby log=\S+ http=(\S+)")[1]
        try:
            return urllib.request.urlopen(f"http://{address}{path}").status
        except urllib.error.HTTPError as error:
            return error.code


class OtherMachineTest(OtherMachine, BucketTest):
    pass


@unittest.skipUnless("DISTRO_TEST_BUCKET" in os.environ, "scripts/test_bucket starts a store and runs this")
class RealStoreTest(OtherMachine, Takeover, BucketTest):
    def use_store(self):
        self.log = ("--log", f"{os.environ['DISTRO_TEST_BUCKET']}/{uuid.uuid4()}/run")

    def test_says_how_long_nobody_serves(self):
        """With the defaults, from SIGKILL to the next round."""
        first = self.create("--standby", round_deadline="60s", rounds=2000)
        command = self.workspace.aggregator_command(*self.log, "--standby", data_dir=self.workspace.folder / "standby",
                                                    listen=self.address)
        standby = self.workspace.start("standby", command)
        standby.find("standby: another aggregator leads")
        self.start_workers()
        first.await_round(8)
        first.kill()
        begin = time.monotonic()
        standby.find("round committed")
        print(f"the next round came {time.monotonic() - begin:.1f} s after the kill", file=sys.stderr)

    def test_stores_a_model_in_parts(self):
        self.workspace.model = {"hidden_size": 2048, "intermediate_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 16}
        first = self.create(segment_blocks=256)
        first.signal(15)
        self.assertEqual(first.exit_code(), 0)
        name = pathlib.Path("snapshots/0.safetensors")
        self.assertGreater((self.workspace.data_dir / name).stat().st_size, 512 << 20)
        self.another("second")
        self.assertTrue(filecmp.cmp(self.workspace.data_dir / name, self.workspace.folder / "second" / name, shallow=False))


class StandbyTest(Takeover, BucketTest):
    def test_one_of_several_takes_over(self):
        first = self.create(*STANDBY, round_deadline="60s")
        waiting = [self.start_standby(f"standby{i}") for i in range(3)]
        workers = self.start_workers()
        first.await_round(4)
        first.signal(15)
        self.assertEqual(first.exit_code(), 0)
        self.finish(workers)
        self.assertEqual([bool(re.search("listening", process.log())) for process in waiting].count(True), 1)
        for process in waiting:
            process.alive()

    def test_takes_over_at_once_from_one_that_is_asked_to_stop(self):
        first = self.create(*STANDBY, "--takeover_after", "1h")
        standby = self.start_standby("standby", "--takeover_after", "1h")
        first.signal(15)
        self.assertEqual(first.exit_code(), 0)
        standby.find("listening")

    def test_waits_after_a_sleep_and_may_lead_again(self):
        first = self.create(*STANDBY, round_deadline="60s")
        standby = self.start_standby("standby", listen=self.workspace.hold_address())
        workers = self.start_workers()
        first.await_round(4)
        first.freeze()
        standby.find("taking over")
        epoch = self.store.objects["one/two/epoch"]
        records = {key: self.store.objects[key] for key in self.store.keys("one/two/rounds/")}
        first.thaw()
        first.find("another aggregator leads")
        self.assertIn("fenced", first.log())
        self.assertEqual({key: self.store.objects[key] for key in records}, records)
        self.assertGreaterEqual(int(self.store.objects["one/two/epoch"][0]), int(epoch[0]))
        standby.find("listening")
        standby.signal(15)
        self.assertEqual(standby.exit_code(), 0)
        until(lambda: first.log().count("listening") == 2, "it leads again")
        self.finish(workers)


class FaultsTest(BucketTest):
    def test_goes_on_after_faults_of_the_store(self):
        """Each kind of fault, at a write in three: also a write that is done and whose answer is lost."""
        for fault in ("refuse", "lose", "cut"):
            with self.subTest(fault):
                self.setUp()
                count = itertools.count()
                self.create(round_deadline="60s")
                self.store.fault = lambda method, key: fault if method != "GET" and next(count) % 3 == 0 else None
                workers = self.start_workers()
                self.expect_whole(self.workspace.processes[0], workers)

    def test_waits_for_a_store_that_is_away(self):
        aggregator = self.create(round_deadline="60s")
        workers = self.start_workers()
        aggregator.await_round(3)
        self.store.fault = lambda method, key: "refuse"
        until(lambda: aggregator.metric("distro_aggregator_log_errors_total", operation="put") > 0, "writes fail")
        self.assertIn("503", aggregator.get("/readyz?verbose")[1])
        self.store.fault = lambda method, key: None
        self.expect_whole(aggregator, workers)

    def test_corrects_a_clock_that_is_a_day_off(self):
        """Of the store, from the beginning or in the middle."""
        self.store.ahead = 86400
        aggregator = self.create(round_deadline="60s")
        workers = self.start_workers()
        aggregator.await_round(4)
        self.store.ahead = -7200
        self.expect_whole(aggregator, workers)

    def test_ends_a_start_although_the_store_is_silent(self):
        self.store.fault = lambda method, key: "stall"
        process = self.workspace.start("starting", self.workspace.aggregator_command(*self.log))
        until(lambda: self.store.requests, "it asks")
        process.signal(15)
        self.assertEqual(process.exit_code(), 0)

    def test_ends_although_the_store_is_silent(self):
        aggregator = self.create()
        self.store.fault = lambda method, key: "stall"
        aggregator.signal(15)
        self.assertEqual(aggregator.exit_code(), 0)

    def test_refuses_a_store_that_ignores_conditions(self):
        self.store.honours_conditions = False
        port_file = self.workspace.folder / "none"
        process = self.workspace.start("refused", self.workspace.aggregator_command("--port_file", port_file, *self.log))
        self.assertEqual(process.exit_code(), 3)
        self.assertIn("ignores If-None-Match", process.log())

    def start_that_fails(self, name, code, what, *flags, **places):
        places = {"data_dir": self.workspace.folder / name, **places}
        process = self.workspace.start(name, self.workspace.aggregator_command(*self.log, *flags, **places))
        self.assertEqual(process.exit_code(), code, process.log())
        self.assertRegex(process.log(), what)

    def start_with_other_run(self, name):
        run = ("--run", self.workspace.write_run(rounds=ROUNDS, seed=77), "--model", self.workspace.folder / "model")
        self.start_that_fails(name, 3, "--data_dir: .*has another configuration .seed: 7 -> 77", *run)

    def test_ends_nobody_by_a_start_that_fails(self):
        first = self.create(round_deadline="60s")
        workers = self.start_workers()
        first.await_round(2)
        own = self.workspace.hold_address()
        self.start_that_fails("listen", 1, "--listen: cannot listen on .* in use", listen=self.address)
        self.start_that_fails("objects", 1, "--objects: .*cannot listen on .* in use", "--objects", self.address)
        self.start_that_fails("twice", 1, "--listen: cannot listen on .* in use", "--objects", own, listen=own)
        self.start_that_fails("http", 1, "HTTP: cannot listen on .* in use", "--http", self.address)
        self.start_that_fails("ports", 2, "--port_file: .*nowhere", "--port_file", self.workspace.folder / "nowhere/ports")
        self.start_with_other_run("run")
        self.expect_whole(first, workers)

    def test_keeps_no_standby_waiting_by_starts_that_fail(self):
        first = self.create(*STANDBY)
        standby = self.start_standby("standby")
        first.kill()
        attempts = itertools.takewhile(lambda _: "taking over" not in standby.log(), range(12))
        for attempt in attempts:
            self.start_with_other_run(f"run{attempt}")
        self.assertIn("taking over", standby.log())

    def test_of_two_aggregators_one_goes_on(self):
        """Both believe to lead the run, as after a partition: the first is fenced, and nothing is lost."""
        first = self.create(round_deadline="60s")
        workers = self.start_workers()
        first.await_round(3)
        second = self.workspace.start_aggregator(*self.log, log_name="second", data_dir=self.workspace.folder / "second")
        self.assertEqual(first.exit_code(), 3)
        self.assertIn("fenced", first.log())
        for worker in workers:
            worker.kill()
        second.signal(15)
        self.assertEqual(second.exit_code(), 0)
        third = self.another("third")
        self.expect_whole(third, [self.workspace.start_worker(f"x{i}", self.address) for i in range(2)])


class KilledTest(BucketTest):
    def test_at_a_request_in_many(self):
        """SIGKILL before and after what a request does; another machine goes on. All requests of a run: DISTRO_TEST_EVERY=1."""
        every = int(os.environ.get("DISTRO_TEST_EVERY", 23))
        moments = ((number, fault) for number in itertools.count(0, every) for fault in ("cut", "lose"))
        for kills, (number, fault) in enumerate(moments):
            with self.subTest(request=number, fault=fault):
                self.setUp()
                if not self.kill_at(number, fault):
                    print(f"{kills} kills")
                    return

    def kill_at(self, number, fault):
        """Whether the run has so many requests."""
        command = [*self.workspace.aggregator_command(*self.log, listen=self.address), "--run",
                   self.workspace.write_run(start_workers=2, rounds=ROUNDS), "--model", self.workspace.init_model()]
        count = itertools.count()

        def kill(_method, _key):
            if next(count) != number:
                return None
            killed.kill()
            self.store.fault = lambda method, key: None
            return fault

        self.store.fault = kill
        killed = self.workspace.start("killed", command)
        workers = self.start_workers()
        until(lambda: killed.child.poll() is not None or all(w.child.poll() is not None for w in workers), "it is killed")
        if killed.child.poll() is None:
            return False
        places = {"data_dir": self.workspace.folder / "second", "listen": self.address}
        second = self.workspace.start_aggregator(*self.log, *command[-4:], log_name="second", **places)
        self.expect_whole(second, workers)
        self.doCleanups()
        return True


if __name__ == "__main__":
    processes.main()
