"""The runner of bench/gpu/first_day over real processes: those that hang, crash, or are killed; time, and results on disk."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from first_day_module import GPU, HARDWARE, SCRIPT, document, load, outcome

import parts
import processes
import results
import runner
import steps

DONE = "[ RUN      ] A.One\n[       OK ] A.One (0 ms)\n"


def python(code, *arguments):
    return (sys.executable, "-c", code, *map(str, arguments))


def ended(pid):
    """Whether a process is gone, or only waits for its parent."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def quick(name, limit=20):
    return steps.Step(name, python("print('{\"name\": \"row\"}')"), 1, limit)


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.store = results.Results(self.folder / "out")

    def run_parts(self, *listed, seconds=500.0, version="v1"):
        return runner.Runner(self.store, HARDWARE, version, lambda: None, time.monotonic() + seconds).run(listed)

    def run_steps(self, *listed, seconds=500.0, at_once=1, version="v1"):
        """Whether the part is complete, and the states of its steps."""
        complete = self.run_parts(parts.Part("tests", "", lambda context: list(listed), at_once), seconds=seconds, version=version)
        return complete, {name: one["state"] for name, one in (self.store.load("tests") or {"steps": {}})["steps"].items()}


class StepTest(FolderTest):
    def test_ends_and_names_test_that_hangs(self):
        pids = self.folder / "pids"
        code = ("import os, sys, time\n"
                "child = os.fork()\n"  # the program itself; the first process stands for what starts it
                "if child: os.waitpid(child, 0)\n"
                f"print({DONE!r} + '[ RUN      ] A.Two', flush=True)\n"
                "open(sys.argv[1], 'w').write(f'{os.getppid()} {os.getpid()}')\n"
                "time.sleep(1000)\n")
        hangs = steps.Step("hangs", python(code, pids), 1, 1, tests=True)
        self.assertEqual(self.run_steps(hangs, quick("next")), (True, {"hangs": "hung", "next": "passed"}))
        outcome = self.store.load("tests")["steps"]["hangs"]
        self.assertEqual(outcome["why"], "no end within 1 s, in A.Two")
        self.assertEqual(outcome["status"], None)
        self.assertIn("A.Two", outcome["tail"])
        self.assertIn("Thread 1" if shutil.which("gdb") or shutil.which("cuda-gdb") else "no debugger", outcome["stack"])
        for pid in pids.read_text().split():
            processes.until(lambda: ended(pid), f"{pid} ends")

    def test_names_signal_and_test_of_crash(self):
        code = f"import os; print({DONE!r} + '[ RUN      ] B/Two.Crashes/cuda', flush=True); os.kill(os.getpid(), 11)"
        self.assertEqual(self.run_steps(steps.Step("crashes", python(code), 1, 20, tests=True))[1], {"crashes": "failed"})
        self.assertEqual(self.store.load("tests")["steps"]["crashes"]["why"], "ended by SIGSEGV, in B/Two.Crashes/cuda")

    def judged(self, out, status=0, tests=True, err=""):
        code = "import sys; print(sys.argv[1]); print(sys.argv[2], file=sys.stderr); sys.exit(int(sys.argv[3]))"
        return steps.run(steps.Step("step", python(code, out, err, status), 1, 20, tests=tests))

    def test_names_failed_tests_once(self):
        failed = self.judged("[ RUN      ] A.One\n[  FAILED  ] A.One, where GetParam() = cuda (3 ms)\n[  PASSED  ] 2 tests.\n"
                             "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.One, where GetParam() = cuda\n", 1)
        self.assertEqual((failed["state"], failed["why"]), ("failed", "status 1: A.One"))

    def test_fails_without_passed_test(self):
        self.assertEqual(self.judged("[==========] 0 tests ran.\n[  PASSED  ] 0 tests.\n")["why"], "no test ran")
        self.assertEqual(self.judged("x.cc:1: Skipped\nneeds a GPU\n[  SKIPPED ] A.One (0 ms)\n[  PASSED  ] 0 tests.\n")["state"], "failed")
        several = self.judged("x.cc:1: Skipped\nneeds 2 GPU\n\n[  SKIPPED ] A.One (0 ms)\n[  PASSED  ] 0 tests.\n")
        self.assertEqual((several["state"], several["why"]), ("skipped", "needs 2 GPU"))

    def test_passed_and_skipped_tests_are_counted(self):
        row = self.judged(DONE + "[  SKIPPED ] A.Two (0 ms)\n[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.Two\n")
        self.assertEqual((row["state"], row["rows"]), ("passed", [{"passed": 1, "skipped": ["A.Two"]}]))

    def test_other_programs_give_their_lines_of_json_and_their_last_words(self):
        self.assertEqual(self.judged('text\n{"a": 1}\n{"b": 2', tests=False)["rows"], [{"a": 1}])
        self.assertEqual(self.judged('{"a": 1}', 3, tests=False, err="first\nGPU: out of memory")["why"], "status 3: GPU: out of memory")

    def test_fails_without_program(self):
        self.assertEqual(steps.run(steps.Step("none", ("/nowhere/program",), 1, 20))["state"], "failed")


class RunnerTest(FolderTest):
    def test_continues_after_kill(self):
        """The runner is killed while its second step is under way."""
        part = ("import sys; sys.path.insert(0, {gpu!r})\nimport parts, pathlib, results, runner, steps, time\n"
                "folder = pathlib.Path({folder!r})\n"
                "note = \"import os, sys; open(sys.argv[1], 'a').write(f'{{os.getpid()}} ')\"\n"
                "listed = [steps.Step(name, (sys.executable, '-c', note + more, folder / name), 1, 100) for name, more in\n"
                "          (('one', ''), ('two', '; import time; time.sleep(int({sleep})); '), ('three', ''))]\n"
                "part = parts.Part('tests', '', lambda context: listed)\n"
                "runner.Runner(results.Results(folder / 'out'), {hardware!r}, 'v1', lambda: None, time.monotonic() + 500).run([part])\n")

        def start(sleep):
            return subprocess.Popen(python(part.format(gpu=str(GPU), folder=str(self.folder), sleep=sleep, hardware=HARDWARE)), stdout=subprocess.DEVNULL)

        def pids(name):
            path = self.folder / name
            return path.read_text().split() if path.exists() else []

        first = start(1000)
        processes.until(lambda: pids("two"), "the second step")
        first.kill()
        first.wait()
        self.assertEqual(list(self.store.load("tests")["steps"]), ["one"])
        processes.until(lambda: ended(pids("two")[0]), "the second step ends with the runner")
        self.assertEqual(start(0).wait(), 0)
        self.assertEqual([len(pids(name)) for name in ("one", "two", "three")], [1, 2, 1])
        self.assertTrue(self.store.load("tests")["complete"])

    def test_leaves_long_step_to_next_call(self):
        long = steps.Step("long", python("print()"), 200, 400)
        self.assertEqual(self.run_steps(long, quick("short", 1000), seconds=100), (False, {"short": "passed"}))
        self.assertEqual(self.run_steps(long, quick("short"), seconds=500), (True, {"short": "passed", "long": "passed"}))

    def test_drops_step_cut_by_end_of_call(self):
        pid = self.folder / "pid"
        sleeps = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(1000)"
        self.assertEqual(self.run_steps(steps.Step("sleeps", python(sleeps, pid), 1, 400), seconds=7), (False, {}))
        processes.until(lambda: ended(pid.read_text()), "it ends with the call")

    def test_runs_next_part_after_incomplete_one(self):
        first = parts.Part("tests", "", lambda context: [steps.Step("long", python(""), 900, 900)])
        second = parts.Part("kernels", "", lambda context: [quick("next")])
        third = parts.Part("learning", "", lambda context: self.fail("too little time is left"), least=600)
        self.assertFalse(self.run_parts(first, second, third))
        self.assertIsNone(self.store.load("tests"))
        self.assertTrue(self.store.load("kernels")["complete"])

    def test_steps_of_a_part_may_run_at_once(self):
        """Each ends once the other has begun."""
        code = ("import pathlib, sys, time\nown, other = map(pathlib.Path, sys.argv[1:])\nown.touch()\n"
                "while not other.exists(): time.sleep(0.01)")
        one, two = (steps.Step(str(i), python(code, self.folder / str(i), self.folder / str(1 - i)), 1, 100) for i in (0, 1))
        self.assertEqual(self.run_steps(one, two, at_once=2), (True, {"0": "passed", "1": "passed"}))

    def test_versions_of_all_steps_are_in_the_results(self):
        self.run_steps(quick("one"), steps.Step("two", python(""), 900, 900))
        self.assertEqual(self.store.load("tests")["version"], "v1")
        self.run_steps(quick("one"), steps.Step("two", python(""), 1, 20), version="v2")
        self.assertEqual(self.store.load("tests")["version"], "v1, v2")

    def test_makes_command_of_earlier_results(self):
        later = steps.Step("later", lambda: python(f"print('{json.dumps(results.rows(self.store.load('tests')))[1:-1]}')"), 1, 20)
        self.run_steps(quick("first"), later)
        self.assertEqual(self.store.load("tests")["steps"]["later"]["rows"], [{"name": "row"}])


class ResultsTest(FolderTest):
    def test_checks_fields(self):
        good = document("tests", {"step": outcome({"a": 1})})
        results.check(good, "tests")
        bad = [{**good, "schema": 2}, {**good, "part": "kernels"}, {**good, "hardware": {"gpu": "x"}}, {**good, "complete": 1}, {**good, "more": 1},
               {**good, "steps": {"step": outcome(state="fine")}}, {**good, "steps": {"step": {**outcome(), "rows": None}}}, []]
        bad += [{key: value for key, value in good.items() if key != removed} for removed in good]
        for one in bad:
            with self.assertRaises(results.Refused, msg=str(one)):
                results.check(one, "tests")

    def test_refuses_damaged_file(self):
        self.store.store(document("tests", {}))
        (self.store.folder / "kernels.unfinished").write_text("{")
        self.assertIsNone(self.store.load("kernels"))
        (self.store.folder / "tests.json").write_text("{")
        with self.assertRaises(results.Refused):
            self.store.load("tests")

    def test_results_of_different_gpus_are_not_mixed(self):
        self.store.store(document("tests", {}))
        names = ["tests", "kernels"]
        self.assertEqual(self.store.require_one_gpu(names, HARDWARE | {"driver": "590"})["gpu"], HARDWARE["gpu"])
        for other in ({"gpu": "NVIDIA H200"}, {"gpus": 2}, {"memory_mib": 1}):
            with self.assertRaises(results.Refused, msg=str(other)):
                self.store.require_one_gpu(names, HARDWARE | other)
        self.store.store(document("kernels", {}, gpu="NVIDIA H200"))
        with self.assertRaisesRegex(results.Refused, "H200.*kernels"):
            self.store.require_one_gpu(names)


class ExitStatusTest(FolderTest):
    first_day = load()

    def status(self, *arguments):
        # Without nvidia-smi, whatever machine this is.
        done = subprocess.run([sys.executable, "-B", SCRIPT, *map(str, arguments)], env={"PATH": "/nowhere"}, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_usage_and_a_machine_without_a_gpu(self):
        here = ("--build", self.folder, "--out", self.folder / "out")
        self.assertEqual(self.status("run", "nothing", *here)[0], 2)
        self.assertEqual(self.status("run", "--archive", "/nowhere/x.tar.gz")[0], 2)
        status, told = self.status("run", "machine", *here)
        self.assertEqual((status, told), (3, "first_day: nvidia-smi knows no GPU\n"))

    def test_is_2_on_damaged_result(self):
        self.store.store(document("tests", {}))
        (self.store.folder / "tests.json").write_text("{}")
        status, told = self.status("list", "--out", self.store.folder)
        self.assertEqual(status, 2)
        self.assertIn("tests: has not the keys", told)

    def test_failures_and_time_that_is_over(self):
        self.store.store(document("machine", {"a": outcome()}))
        self.store.store(document("tests", {"b": outcome(state="hung", why="no end"), "c": outcome(state="skipped")}))
        self.assertEqual(self.first_day.verdict(self.store, ["machine"], True), 0)
        self.assertEqual(self.first_day.verdict(self.store, ["machine", "tests"], True), 1)
        self.assertEqual(self.first_day.verdict(self.store, ["machine", "tests"], False), 4)

    def test_is_0_of_list(self):
        self.store.store(document("tests", {"b": outcome(state="hung"), "c": outcome()}, complete=False))
        status, told = self.status("list", "--out", self.store.folder)
        self.assertEqual(status, 0)
        self.assertRegex(told, r"tests +begun, 2 steps, 1 failed")
        self.assertEqual(told.count("not begun"), len(parts.PARTS) - 1)


if __name__ == "__main__":
    unittest.main()
