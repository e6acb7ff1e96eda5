"""Start, end and reconnection of the processes of a run."""
import pathlib
import re
import signal
import subprocess
import sys

import processes
from processes import ProcessTest, until


class RefusalTest(ProcessTest):
    """Exit codes of a worker that cannot train."""

    def expect(self, code, words, worker):
        self.assertEqual(worker.exit_code(), code, worker.log())
        self.assertIn(words, worker.log())

    def test_names_wrong_or_missing_flag(self):
        space = self.workspace
        self.expect(2, "--aggregator", space.start_worker("a", ""))
        self.expect(2, "--threads", space.start_worker("b", "127.0.0.1:1", "--threads", "0"))
        self.expect(2, "absent.txt", space.start_worker("c", "127.0.0.1:1", "--data", "absent.txt"))
        self.expect(2, "unknown command", space.start_worker("d", "127.0.0.1:1", "dance"))

    def test_plaintext_must_be_asked_for(self):
        space = self.workspace
        self.expect(2, "--insecure", space.start_worker("a", "127.0.0.1:1", "--noinsecure"))
        space.distroctl("run", "show", "127.0.0.1:1", code=2)

    def test_other_data_than_the_run_has(self):
        space = self.workspace
        aggregator = space.create_run(start_workers=2)
        space.start_worker("first", aggregator.grpc)
        aggregator.await_state("first", "active")
        space.text = space.folder / "other.txt"
        space.text.write_text(processes.text(2))
        self.expect(3, "fingerprint", space.start_worker("second", aggregator.grpc))

    def test_ends_older_process_of_name(self):
        space = self.workspace
        aggregator = space.create_run(start_workers=2)
        older = space.start_worker("name", aggregator.grpc, log_name="older")
        aggregator.await_state("name", "active")
        newer = space.start_worker("name", aggregator.grpc, log_name="newer")
        self.expect(4, "newer", older)
        aggregator.await_state("name", "active")
        self.assertTrue(newer.alive())


class HelperTest(ProcessTest):
    """The helper that these tests start processes with."""

    def test_ends_what_test_started(self):
        script = ("import pathlib, processes, time; "
                  f"print(processes.Process('child', ['sleep', '1000'], pathlib.Path({str(self.workspace.folder)!r})).child.pid, flush=True); "
                  "time.sleep(1000)")
        test = subprocess.Popen([sys.executable, "-c", script], cwd=pathlib.Path(__file__).parent, stdout=subprocess.PIPE, text=True)
        child = pathlib.Path(f"/proc/{test.stdout.readline().strip()}/comm")
        until(lambda: child.read_text() == "sleep\n", "the child runs")
        with test:
            test.kill()

        def ended():
            try:
                return "State:\tZ" in (child.parent / "status").read_text()
            except OSError:
                return True
        until(ended, "the child ends", 30)


class SignalTest(ProcessTest):
    def test_lets_worker_leave(self):
        space = self.workspace
        aggregator = space.create_run(start_workers=2, rounds=100000)
        workers = {"int": space.start_worker("int", aggregator.grpc), "term": space.start_worker("term", aggregator.grpc)}
        aggregator.await_round(5)
        for name, number, code in (("int", signal.SIGINT, 130), ("term", signal.SIGTERM, 143)):
            workers[name].signal(number)
            self.assertEqual(workers[name].exit_code(), code)
            self.assertEqual(space.states(aggregator)[name], "left")
            self.assertGreaterEqual(workers[name].summary()["rounds_applied"], 4)

    def test_ends_worker_that_waits(self):
        worker = self.workspace.start_worker("alone", "127.0.0.1:1")
        until(lambda: worker.get("/readyz")[0] == 503, "not ready")
        self.assertEqual(worker.get("/healthz")[0], 200)
        worker.signal(signal.SIGTERM)
        self.assertEqual(worker.exit_code(), 143)

    def test_ends_aggregator_and_workers_wait(self):
        space = self.workspace
        aggregator = space.create_run(rounds=100000)
        worker = space.start_worker("a", aggregator.grpc)
        aggregator.await_round(5)
        aggregator.signal(signal.SIGTERM)
        self.assertEqual(aggregator.exit_code(), 0)
        self.assertTrue(worker.alive())


class MetricsTest(ProcessTest):
    def test_is_served_by_worker(self):
        space = self.workspace
        aggregator = space.create_run(rounds=100000)
        worker = space.start_worker("a", aggregator.grpc)
        until(lambda: worker.get("/readyz")[0] == 200, "the worker is ready")
        until(lambda: worker.metric("distro_worker_round") >= 5, "round 5")
        self.assertGreater(worker.metric("distro_worker_tokens_total"), 0)
        self.assertGreater(worker.metric("distro_worker_sent_bytes_total", kind="update"), 0)
        self.assertGreater(worker.metric("distro_worker_phase_seconds_total", phase="forward_backward"), 0)
        self.assertEqual(worker.get("/healthz")[0], 200)


class RunTest(ProcessTest):
    """Whole runs with a disturbance."""

    def test_workers_go_on_after_the_aggregator_was_killed(self):
        space = self.workspace
        aggregator = space.create_run(rounds=60, start_workers=2)
        workers = [space.start_worker(name, aggregator.grpc) for name in ("a", "b")]
        aggregator.await_round(20)
        aggregator.kill()
        space.start_aggregator(listen=aggregator.grpc)
        state_hash = self.finish(workers)
        replay = space.replay()
        self.assertEqual(replay["state"], state_hash)
        self.assertTrue(replay["rounds"].startswith("60 of 60, "), replay)
        for worker in workers:
            self.assertEqual(worker.summary()["rounds_applied"], 60)
            self.assertGreater(worker.summary()["reconnects"], 0)

    def test_uploads_to_empty_aggregator(self):
        space = self.workspace
        aggregator = space.start_aggregator()
        self.assertIn("no run", space.distroctl("run", "show", aggregator.grpc, "--insecure"))
        early = space.start_worker("early", aggregator.grpc)
        create = ("run", "create", aggregator.grpc, "--run", space.write_run(rounds=10, start_workers=2), "--model",
                  space.init_model(), "--insecure")
        created = re.search(r"created run (test-\w+)", space.distroctl(*create))
        self.assertIn(f"run {created[1]} exists", space.distroctl(*create))
        space.write_run(rounds=11, start_workers=2)
        self.assertIn(created[1], space.distroctl(*create, code=3))
        state_hash = self.finish([early, space.start_worker("later", aggregator.grpc)])
        self.assertEqual(space.replay()["state"], state_hash)
        self.assertIn("done", space.distroctl("run", "show", aggregator.grpc, "--insecure"))


if __name__ == "__main__":
    processes.main()
