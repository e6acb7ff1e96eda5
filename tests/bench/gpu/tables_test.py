"""The parts of bench/gpu/first_day name what is there, and its tables say what its results say."""
import json
import pathlib
import re
import subprocess
import tarfile
import tempfile
import unittest
import unittest.mock

from first_day_module import ROOT, document, load, outcome

import page
import parts
import programs
import results
import tables

first_day = load()


class PartsTest(unittest.TestCase):
    """Everything about the steps that needs no GPU."""

    @classmethod
    def setUpClass(cls):
        cls.programs = set()

        def program(name):
            cls.programs.add(name)
            return pathlib.Path("/nowhere/bin") / name
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        context = parts.Context(program, lambda: "/nowhere/text", "/nowhere/package", lambda part: None, pathlib.Path(folder.name))
        cls.steps = {part.name: part.steps(context) for part in parts.PARTS}

    def test_names_steps_apart_and_fits_one_call(self):
        for part, listed in self.steps.items():
            self.assertTrue(listed, part)
            self.assertEqual(len({step.name for step in listed}), len(listed), part)
            for step in listed:
                self.assertLess(step.usual, step.limit, f"{part}: {step.name}")
                self.assertLess(step.limit, 330, f"{part}: {step.name}")

    def test_adamw_takes_as_many_tokens_as_the_faster_of_our_methods(self):
        done = {"deltas": outcome({"tokens": 10}, {"tokens": 20}), "signs": outcome({"tokens": 15})}
        context = parts.Context(lambda name: pathlib.Path(name), lambda: "text", None, lambda part: {"steps": done}, None)
        command = parts.learning_steps(context)[-1].command()
        self.assertEqual(command[command.index("--tokens") + 1], 20)

    def test_variants_differ_from_the_configuration_in_what_their_names_say(self):
        sizes = {}
        for step in self.steps["variants"]:
            *_, path, sequences, positions = step.command
            found = json.loads(path.read_text())
            self.assertEqual(sequences * positions, 32 * 1024)
            self.assertLessEqual(positions, found["max_position_embeddings"])
            sizes[step.name] = (found["vocab_size"], found["hidden_size"] // found["num_attention_heads"], positions, parts.FLASH[0] in step.command)
        words, heads, long = (50304, 64, 1024), (50257, 256, 1024), (50257, 64, 8192)
        self.assertEqual(sizes, {f"{name}, {attention}": (*changed, attention == "flash") for attention in ("cuDNN", "flash")
                                 for name, changed in (("50304 words", words), ("heads of 256", heads), ("8192 positions", long))}
                         | {"as it is, flash": (50257, 64, 1024, True)})

    def test_files_that_commands_name_are_there(self):
        for part, listed in self.steps.items():
            for step in listed:
                command = step.command() if callable(step.command) else step.command
                for word in command:
                    if str(word).startswith(str(ROOT)):
                        self.assertTrue(pathlib.Path(word).exists(), f"{part}: {step.name}: {word}")

    def test_names_tests_of_python_programs(self):
        for file, named in parts.PYTHON_TESTS.values():
            suite, test = named.split(".")
            text = (ROOT / "tests/python" / file).read_text()
            self.assertIn(f"class {suite}(", text)
            self.assertIn(f"def {test}(", text)

    def test_uses_programs_of_archive(self):
        script = (ROOT / "scripts/package_programs").read_text()
        packed = re.search(r"programs\+=\((.*?)\)", script, re.S)[1].split()
        self.assertEqual(set(packed) | {"distro-worker"}, self.programs)

    def test_uses_programs_that_are_targets(self):
        files = subprocess.run(["git", "-C", ROOT, "ls-files", "*CMakeLists.txt"], capture_output=True, text=True, check=True).stdout.split()
        text = "\n".join((ROOT / file).read_text() for file in files)
        for program in self.programs:
            looped = program.removesuffix("_test")
            self.assertTrue(re.search(rf"NAME {program}\b", text) or re.search(rf"foreach\(name [^)]*\b{looped}\b", text), program)


class ProgramsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_programs_of_an_archive_run_and_find_the_libraries_of_pytorch(self):
        libraries = self.folder / "site-packages/torch"
        libraries.mkdir(parents=True)
        program = self.folder / "distro-worker"
        program.write_text("#!/bin/sh\nls -d $(dirname $0)/../torch/\n")
        program.chmod(0o755)
        archive = self.folder / "distro-1-cuda.tar.xz"
        with tarfile.open(archive, "w:xz") as file:
            file.add(program, "distro/bin/distro-worker")
            (self.folder / "made").write_text("v1-2-gabc\n")
            file.add(self.folder / "made", "distro/VERSION")
        with unittest.mock.patch.object(programs, "torch_folder", lambda: libraries):
            unpacked = programs.of_archive(archive, self.folder)("distro-worker")
        self.assertEqual(subprocess.run([unpacked], capture_output=True).returncode, 0)
        self.assertEqual((unpacked.parent / "../torch").resolve(), libraries)
        self.assertEqual(programs.version_of_archive(self.folder), "v1-2-gabc")

    def test_programs_of_a_build_are_found_in_its_folders(self):
        (self.folder / "tests").mkdir()
        (self.folder / "tests/cuda_test").write_text("")
        find = programs.of_build(self.folder)
        self.assertEqual(find("cuda_test"), self.folder / "tests/cuda_test")
        self.assertFalse(find("distro-worker").exists())


class TablesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.store = results.Results(pathlib.Path(folder.name))

    def table(self, page_name, name):
        return tables.contents(self.store)[page_name][name]

    def test_matches_committed_results(self):
        for name, contents in tables.contents(results.Results(ROOT / "bench/gpu/results")).items():
            before = (ROOT / name).read_text()
            with tempfile.TemporaryDirectory() as folder:
                copy = pathlib.Path(folder) / "page.md"
                copy.write_text(before)
                page.fill(copy, contents)
                self.assertEqual(copy.read_text(), before, f"{name}: bench/gpu/first_day page")

    def test_says_what_was_not_measured(self):
        for contents in tables.contents(self.store).values():
            self.assertEqual(set(contents.values()), {"Not measured on a GPU yet."})

    def test_results_of_different_gpus_make_no_tables(self):
        self.store.store(document("tests", {}))
        self.store.store(document("kernels", {}, gpu="NVIDIA H200"))
        with self.assertRaises(results.Refused):
            tables.contents(self.store)

    def test_names_day_and_hardware(self):
        self.store.store(document("replicas", {"deltas": outcome({"rounds": 40, "reported": 80, "different": 0,
                                                                     "phases": {"compress": 0.4}})}, complete=False))
        told = self.table("bench/gpu/README.md", "gpu_replicas").splitlines()
        self.assertEqual(told[0], "2026-12-01, NVIDIA H100 80GB HBM3, driver 580.1, 16 cores of a processor, version v1; "
                                  "not all of its steps have run:")
        self.assertIn("| deltas | 40 | 80 | 0 | equal |", told)
        self.assertEqual(told[-1], "| deltas | 10 |")

    def test_kernels_are_compared_with_the_copy_and_with_pytorch(self):
        ours = [{"name": "copy", "parameters": 1000000000, "bytes": 8, "median_ms": 2.0},
                {"name": "compress k=4", "parameters": 1000000000, "bytes": 12, "median_ms": 6.0}]
        self.store.store(document("kernels", {"ours": outcome(*ours), "pytorch": outcome({"name": "compress k=4", "median_ms": 90.0})}))
        told = self.table("bench/gpu/README.md", "gpu_kernels")
        self.assertIn("The copy moves 4.00 TB/s", told)
        self.assertIn("| compress k=4 | 6.000 | 3.000 | 2.00 | 90.0 | 15.0 |", told)
        self.store.store(document("kernels", {"ours": outcome(state="failed", why="status 1")}))
        self.assertIn("Failed", self.table("bench/gpu/README.md", "gpu_kernels"))

    def test_training_is_compared_with_eager(self):
        def step(name, rate):
            return outcome({"name": name, "tokens_per_second": rate, "median_ms": 1.0})
        self.store.store(document("training", {"125 M, ours": step("distro", 300.0), "125 M, eager": step("eager", 200.0)}))
        self.store.store(document("large", {"1.2 B, ours": step("distro", 50.0)}) | {"version": "v2"})
        told = self.table("docs/performance.md", "gpu_training").splitlines()
        self.assertIn("version v1, v2; not all of its steps have run:", told[0])
        self.assertEqual(told[-3:], ["| 125 M | a worker's | 300 | 1.0 | 1.50 |", "| 125 M | eager | 200 | 1.0 | 1.00 |",
                                     "| 1.2 B | a worker's | 50 | 1.0 |  |"])

    def test_tests_that_did_not_pass_are_named(self):
        steps = {"cuda_test": outcome({"passed": 3, "skipped": []}),
                 "signs_apply_test": outcome({"passed": 0, "skipped": []}, state="hung", why="no end within 120 s, in A.B"),
                 "worker_gpu_test C.D": outcome({"passed": 0, "skipped": ["C.D"]}, state="skipped", why="needs 2 GPU")}
        self.store.store(document("tests", steps))
        told = self.table("bench/gpu/README.md", "gpu_tests").splitlines()
        self.assertEqual(told[-2:], ["| kernels | 2 | 1 | 3 | signs_apply_test hung: no end within 120 s, in A.B |",
                                     "| ranks and nodes | 1 | 0 | 0 | worker_gpu_test C.D skipped: needs 2 GPU |"])

    def test_losses_are_compared_at_equal_tokens(self):
        def curve(name, *losses):
            return outcome(*({"name": name, "step": i + 1, "tokens": 1000000 * (i + 1), "held_out_loss": loss, "seconds": 2.0 * i, "phases": {"compress": 0.25 * i, "wait": 0.0},
                              "sent_bytes": 5000000 * i, "received_bytes": 7000000 * i} for i, loss in enumerate(losses)))
        self.store.store(document("learning", {"deltas": curve("deltas", 3.0, 2.0, 1.5), "adamw": curve("adamw", 3.1, 2.1)}))
        told = self.table("bench/gpu/README.md", "gpu_learning").splitlines()
        self.assertIn("| 1.00 M | 3.000 | 3.100 |", told)
        self.assertIn("| 2.00 M | 2.000 | 2.100 |", told)
        self.assertFalse([line for line in told if line.startswith("| 3.00 M")])
        self.assertIn("| deltas | 2 s | 5.0 MB | 7.0 MB |", told)
        self.assertEqual(told[-4:], ["| milliseconds a round | compress | wait |", "|---|---|---|", "| deltas | 250 | 0 |", "| adamw | 250 | 0 |"])

    def test_phases_are_those_of_a_round(self):
        rows = ({"step": 11, "phases": {"idle": 9.0, "compress": 0.5}}, {"step": 21, "phases": {"idle": 9.0, "compress": 0.6}})
        self.store.store(document("rounds", {"1.2 B, deltas": outcome(*rows), "1.2 B, signs": outcome(state="hung", why="no end")}))
        told = self.table("bench/gpu/README.md", "gpu_rounds").splitlines()
        self.assertEqual(told[-3:], ["| milliseconds a round | compress |", "|---|---|", "| 1.2 B, deltas | 30 |"])


if __name__ == "__main__":
    unittest.main()
