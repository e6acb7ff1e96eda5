"""What a program inherits, and what the system does to it: signals, streams whose reader ends or does not read, limits, the
environment, the folder for temporary files (docs/tools.md, "How a program ends").

The Python package: tests/python/package_test.py. Cases of one process: tests/common/base/process/{prepare_process,stop_signal}_test.cc.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import processes
from processes import ENDS_WITH_US, LIMIT_SECONDS, ProcessTest, until

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md").read_text()

# Nobody means the end of a program by these.
WITHOUT_A_REASON = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF,
                    signal.SIGIO, signal.SIGPWR, signal.SIGRTMIN, signal.SIGRTMAX]

# In front of a command: a start that goes wrong in as many ways as there are.
FOLDER_GONE = 'mkdir -m 700 "$0" && cd "$0" && rmdir "$0"; '
BADLY_STARTED = (
    "umask 0777; ulimit -S -n 64; ulimit -S -s 512; exec env -i --block-signal=TERM,INT,HUP,PIPE --ignore-signal=INT,CHLD "
    "LANG=de_DE.UTF-8 LC_ALL=none TZ=Nowhere/None OMP_NUM_THREADS=many TMPDIR= "
    'bash -c \'exec -a "" "$@" <&- >&- 2>&-\' - "$@"')


def start(*command, **streams):
    return subprocess.Popen([*ENDS_WITH_US, *map(str, command)], **{"stdin": subprocess.DEVNULL, **streams})


class EndingsTest(ProcessTest):
    def setUp(self):
        super().setUp()
        self.space = self.workspace
        self.children = []
        self.addCleanup(lambda: [child.kill() for child in self.children if child.poll() is None])

    def start(self, *command, **streams):
        self.children.append(start(*command, **streams))
        return self.children[-1]

    def worker_command(self, aggregator, *flags):
        return [self.binaries.worker, "--aggregator", aggregator.grpc, "--data", self.space.text, "--insecure", "--name", "w",
                "--state_dir", self.space.folder / "state", *flags]

    def archiver_command(self, aggregator, *flags):
        return [self.binaries.archiver, "--aggregator", aggregator.grpc, "--data_dir", self.space.folder / "archive", "--insecure", *flags]

    def state(self):
        return self.space.folder / "state" / "worker.state"


class StreamsTest(EndingsTest):
    def without_a_reader(self, *command):
        """Starts it with outputs whose reader has ended."""
        read, write = os.pipe()
        os.close(read)
        try:
            return self.start(*command, stdout=write, stderr=write)
        finally:
            os.close(write)

    def test_survives_end_of_reader(self):
        space = self.space
        ports = space.folder / "ports"
        aggregator = self.without_a_reader(*space.aggregator_command(
            "--run", space.write_run(start_workers=1), "--model", space.init_model(), "--port_file", ports))
        until(ports.exists, "the aggregator listens")
        aggregator.grpc = re.match(r"grpc=(\S+)", ports.read_text())[1]
        summary, checkpoints = space.folder / "summary.json", space.folder / "checkpoints"
        worker = self.without_a_reader(*self.worker_command(
            aggregator, "--updates", 10, "--summary", summary, "--checkpoint_dir", checkpoints))
        self.assertEqual(worker.wait(LIMIT_SECONDS), 0)
        for path in (summary, checkpoints, self.state()):
            self.assertTrue(path.exists(), path)
        self.assertEqual(self.without_a_reader(*self.archiver_command(aggregator, "--once")).wait(LIMIT_SECONDS), 0)
        for words in (["run", "show"], ["workers", "--watch", "--interval", "100ms"]):
            command = [self.binaries.distroctl, *words, aggregator.grpc, "--insecure"]
            self.assertEqual(self.without_a_reader(*command).wait(LIMIT_SECONDS), 0, words)
        aggregator.send_signal(signal.SIGTERM)
        self.assertEqual(aggregator.wait(LIMIT_SECONDS), 0)

    def test_survives_reader_that_does_not_read(self):
        """Nobody reads what the worker writes; the pipe has room for its first lines."""
        aggregator = self.space.create_run(start_workers=1)
        read, write = os.pipe()
        os.set_blocking(write, False)
        os.write(write, b"x" * (1 << 20))  # as much as there is room for
        os.set_blocking(write, True)
        worker = self.start(*self.worker_command(aggregator, "--updates", 5), stdout=write, stderr=write)
        os.close(write)
        self.assertEqual(worker.wait(LIMIT_SECONDS), 0)
        self.assertTrue(self.state().exists())
        os.close(read)

    def test_fails_when_result_cannot_be_written(self):
        for program in vars(self.binaries).values():
            with open("/dev/full", "w") as full:
                done = subprocess.run([program, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS)
            self.assertEqual(done.returncode, 1, program)
            self.assertEqual(done.stderr, f"{pathlib.Path(program).name}: standard output could not be written whole\n")


class SignalsTest(EndingsTest):
    def running(self):
        """All three that run for long, each with work to do."""
        space = self.space
        aggregator = space.create_run(start_workers=1)
        worker = space.start("worker", self.worker_command(aggregator, "--hold_back", "50ms"))
        archiver = space.start("archiver", self.archiver_command(aggregator))
        aggregator.await_round(3)
        archiver.find("archive saved|following|round|starting")
        return aggregator, worker, archiver

    def test_signals_without_a_reason_do_nothing(self):
        programs = self.running()
        for program in programs:
            for number in WITHOUT_A_REASON:
                program.signal(number)
        programs[0].await_round(programs[0].round() + 3)
        for program in programs:
            program.alive()
            program.signal(signal.SIGTERM)
        self.assertEqual([program.exit_code() for program in programs], [0, 143, 0])

    def test_closed_terminal_ends_all_but_aggregator(self):
        aggregator, worker, archiver = programs = self.running()
        for program in programs:
            program.signal(signal.SIGHUP)
            program.signal(signal.SIGHUP)  # a shell repeats it
        self.assertEqual((worker.exit_code(), archiver.exit_code()), (129, 0))
        self.assertTrue(self.state().exists())
        aggregator.find("worker changed worker=w state=left")
        aggregator.find("SIGHUP: goes on")
        aggregator.signal(signal.SIGTERM)
        self.assertEqual(aggregator.exit_code(), 0)

    def test_nohup_and_the_limit_of_processor_time(self):
        aggregator = self.space.create_run(start_workers=1)
        worker = self.space.start("worker", ["env", "--ignore-signal=HUP", *self.worker_command(aggregator, "--hold_back", "50ms")])
        aggregator.await_round(3)
        worker.signal(signal.SIGHUP)
        aggregator.await_round(aggregator.round() + 3)
        worker.alive()
        worker.signal(signal.SIGXCPU)
        worker.signal(signal.SIGXCPU)  # the kernel repeats it
        self.assertEqual(worker.exit_code(), 152)
        self.assertTrue(self.state().exists())


class InheritedTest(EndingsTest):
    def badly(self, *command):
        gone = "" if command[0] == self.binaries.worker else FOLDER_GONE
        return self.start("bash", "-c", gone + BADLY_STARTED, self.space.folder / "gone", *command)

    def test_programs_that_were_started_badly_do_their_work(self):
        space = self.space
        ports = space.folder / "ports"
        aggregator = self.badly(*space.aggregator_command(
            "--run", space.write_run(start_workers=1), "--model", space.init_model(), "--port_file", ports))
        until(ports.exists, "the aggregator listens")
        aggregator.grpc = re.match(r"grpc=(\S+)", ports.read_text())[1]
        summary = space.folder / "summary.json"
        worker = self.badly(*self.worker_command(aggregator, "--updates", 3, "--summary", summary))
        self.assertEqual(worker.wait(LIMIT_SECONDS), 0)
        for path in (summary, self.state(), space.data_dir / "run.pb"):
            self.assertEqual(path.stat().st_mode & 0o600, 0o600, path)
        self.assertEqual(self.badly(*self.archiver_command(aggregator, "--once")).wait(LIMIT_SECONDS), 0)
        self.assertEqual(self.badly(self.binaries.distroctl, "run", "show", aggregator.grpc, "--insecure").wait(LIMIT_SECONDS), 0)
        aggregator.send_signal(signal.SIGTERM)
        self.assertEqual(aggregator.wait(LIMIT_SECONDS), 0)

    def test_names_missing_folder(self):
        """LibTorch's MKL ends the process before main."""
        done = subprocess.run(["bash", "-c", FOLDER_GONE + 'exec "$@"', self.space.folder / "gone", self.binaries.worker, "--version"],
                              capture_output=True, text=True, timeout=LIMIT_SECONDS)
        if done.returncode != 0:
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(re.sub(r"/\S*/", "PATH/", re.search("Intel.*", done.stderr)[0]), PAGE)

    def test_names_limit_of_file_sizes(self):
        aggregator = self.space.create_run(start_workers=1)
        worker = self.start("bash", "-c", 'ulimit -f 4; exec "$@"', "-", *self.worker_command(aggregator, "--updates", 1),
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = worker.communicate(timeout=LIMIT_SECONDS)[1]
        self.assertEqual(worker.returncode, 1, said)
        self.assertIn("File too large: raise the limit of file sizes (ulimit -f)", said)


class TemporaryFolderTest(EndingsTest):
    def places(self):
        """A value of TMPDIR, and the exit code with it."""
        file = self.space.folder / "file"
        file.write_text("")
        return (self.space.folder / "gone", 2), (file, 2), ("", 0)

    def check(self, code, place, command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_SECONDS,
                              env={**os.environ, "TMPDIR": str(place)})
        self.assertEqual(done.returncode, code, done.stderr)
        if code == 0:
            return
        said = re.search(r"TMPDIR: .*?to write in", done.stderr)[0].replace(str(place), "PATH")
        self.assertIn(said, PAGE)

    def test_is_checked_by_worker(self):
        aggregator = self.space.create_run(start_workers=1)
        for place, code in self.places():
            command = [self.binaries.worker, "--aggregator", aggregator.grpc, "--data", self.space.text, "--insecure", "--updates", 1]
            self.check(code, place, command)

    def test_is_checked_by_run_create(self):
        aggregator = self.space.start_aggregator()
        run, model = self.space.write_run(), self.space.init_model()
        for place, code in self.places():
            self.check(code, place, [self.binaries.distroctl, "run", "create", aggregator.grpc, "--run", run, "--model", model, "--insecure"])


if __name__ == "__main__":
    processes.main()
