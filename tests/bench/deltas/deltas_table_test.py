"""bench/deltas_table.py: every operation of the program has its floor there, and the table says what was measured."""
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
import deltas_table  # noqa: E402

PROGRAM = sys.argv.pop()


def measured(name, rate, **other):
    return {"run_name": name, "run_type": "iteration", "items_per_second": rate, **other}


class DeltasTableTest(unittest.TestCase):
    def test_has_floor_of_operations(self):
        listed = subprocess.run([PROGRAM, "--benchmark_list_tests"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        no_operations = ("Muon", "Encode/", "Floor/", "ScatteredFloor/")  # two have a line or no row of their own, two are floors
        operations = [name for name in listed if not name.startswith(no_operations)]
        self.assertEqual({name.partition("/")[0] for name in operations}, set(deltas_table.FLOORS))
        for name in operations:
            self.assertIn(deltas_table.floor_of(name)[0], listed)

    def test_takes_best_repetition(self):
        rows = deltas_table.best({"benchmarks": [
            measured("FormDelta", 2e9), measured("FormDelta", 3e9), {"run_name": "FormDelta", "run_type": "aggregate"}]})
        self.assertEqual(rows["FormDelta"]["items_per_second"], 3e9)

    def test_rows_stand_in_the_order_of_the_operations(self):
        rows = deltas_table.best({"benchmarks": [
            measured("Muon", 2e6, cpu_time=2000, flops=8e10), measured("SubtractReturned, elements/k:8", 1e10), measured("FormDelta", 2e9),
            measured("ScatteredFloor/k:8", 5e10), measured("Floor/bytes:16", 5e9)]})
        self.assertEqual(deltas_table.table(rows).splitlines()[2:], [
            "| FormDelta | 16 | 2000 | 5000 | 2.5 | 602 |",
            "| SubtractReturned, elements, K = 8 | 8 elements a block | 10000 | 50000 | 5.0 | 120 |",
            "", "Muon's step of a matrix of 2048 x 2048: 2.00 s, 80 GFLOP/s."])


if __name__ == "__main__":
    unittest.main()
