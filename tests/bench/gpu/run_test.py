"""bench/gpu/run.py ends well only when every test passed and every figure of its table is there."""
import importlib.util
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
SPEC = importlib.util.spec_from_file_location("run", ROOT / "bench/gpu/run.py")
run = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(run)

ROW = {"row": {}}
TRAINED = {"distro": {}, "eager": {}, "torch.compile": {}}


class FailuresTest(unittest.TestCase):
    def test_a_whole_table_has_none(self):
        self.assertEqual(run.failures({"cuda_test": True}, ROW, ROW, {"125 M": TRAINED}), [])

    def test_names_tests_and_operations(self):
        self.assertEqual(run.failures({"cuda_test": False}, {}, {}, {}), ["cuda_test", "kernels", "operations"])

    def test_trainings_that_all_failed_are_failures(self):
        failed = run.failures({}, ROW, ROW, {"125 M": TRAINED, "1.2 B": {}})
        self.assertEqual(failed, ["distro training of 1.2 B", "eager training of 1.2 B", "torch.compile training of 1.2 B"])


if __name__ == "__main__":
    unittest.main()
