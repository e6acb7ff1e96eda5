"""bench/step: a worker alone gives the phases of its step; and what writes measured tables into pages."""
import argparse
import os
import pathlib
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[3] / "bench"
sys.path[:0] = [str(BENCH), str(BENCH / "step"), str(pathlib.Path(__file__).resolve().parents[1])]
import benchmark_table  # noqa: E402
import module_step  # noqa: E402
import page  # noqa: E402
import step  # noqa: E402
from binaries import BIN  # noqa: E402


class StepTest(unittest.TestCase):
    def test_has_phases_and_no_waiting(self):
        binaries = step.processes.programs_in(BIN)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "text").write_text("the cat sat on a mat and ran to it. " * 1000)
            options = argparse.Namespace(out=folder, text=folder / "text", threads=1, steps=3, repeat=1, python=None)
            small = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
            parameters, phases, eager, compiled = step.measure(binaries, step.BASE | small, options)
        self.assertEqual((parameters, eager, compiled), ("0.1 M", None, None))
        self.assertEqual(set(phases), {"data", "forward_backward", "compress", "apply"})
        self.assertTrue(all(seconds > 0 for name, seconds in phases.items() if name != "data"), phases)


@unittest.skipUnless(os.environ.get("DISTRO_TORCH_PYTHON"), "without the Python with PyTorch")
class ModuleStepTest(unittest.TestCase):
    def test_measures_plain_and_in_run(self):
        binaries = step.processes.programs_in(BIN)
        with tempfile.TemporaryDirectory() as folder:
            options = argparse.Namespace(out=pathlib.Path(folder), build=pathlib.Path(BIN).parent, threads=1, steps=10,
                                         repeat=1, python=os.environ["DISTRO_TORCH_PYTHON"])
            small = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
            for ranks in (1, 2):
                with self.subTest(ranks=ranks):
                    plain, runs = module_step.measure(binaries, step.BASE | small, ranks, options)
                    self.assertGreater(plain["step"], plain["rest"])
                    self.assertGreater(plain["rest"], 0)
                    self.assertEqual(set(runs), {1, 5})
                    for run in runs.values():
                        self.assertGreater(run["parameters"], 50000)
                        self.assertGreater(run["step"], run["rest"])
                        self.assertGreater(run["rest"], 0)
                        self.assertGreater(run["kernels"], 0)


class TableTest(unittest.TestCase):
    def test_implementations_of_an_operation_stand_side_by_side(self):
        rows = benchmark_table.table({"Apply/reference/votes:16": 20.4, "Apply/avx2/votes:16": 459.0, "Hash/avx2": 7.0}).splitlines()
        self.assertEqual(rows[0], "| millions a second | reference | avx2 |")
        self.assertEqual(rows[2:], ["| Apply, votes:16 | 20 | 459 |", "| Hash |  | 7 |"])

    def test_rates_without_implementations_are_one_column(self):
        rows = benchmark_table.table({"BM_Rank/K:1": 1.0, "BM_Together/threads:2/real_time": 2.0}).splitlines()
        self.assertEqual(rows[0], "| millions a second | rate |")
        self.assertEqual(rows[2:], ["| Rank, K:1 | 1 |", "| Together, threads:2 | 2 |"])

    def test_is_written_into_its_place_only(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "page.md"
            file.write_text("before\n<!-- table: one -->\nold\n<!-- end -->\n<!-- table: two -->\nkept\n<!-- end -->\n")
            page.fill(file, {"one": r"| a\b |"})
            self.assertEqual(file.read_text(), "before\n<!-- table: one -->\n| a\\b |\n<!-- end -->\n<!-- table: two -->\nkept\n<!-- end -->\n")
            with self.assertRaises(SystemExit):
                page.fill(file, {"three": "nothing"})

    def test_puts_each_table_on_page_with_its_place(self):
        with tempfile.TemporaryDirectory() as folder:
            pages = [pathlib.Path(folder) / name for name in ("a.md", "b.md")]
            for file, name in zip(pages, ("one", "two")):
                file.write_text(f"<!-- table: {name} -->\n<!-- end -->\n")
            page.fill_each(pages, {"two": "2", "one": "1"})
            self.assertEqual([file.read_text().splitlines()[1] for file in pages], ["1", "2"])
            with self.assertRaises(SystemExit):
                page.fill_each(pages, {"three": "nothing"})


if __name__ == "__main__":
    unittest.main()
