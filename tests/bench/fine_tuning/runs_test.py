"""bench/fine_tuning: which runs come next, and what the page says of those that have finished."""
import dataclasses
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench" / "fine_tuning"), str(ROOT / "bench")]
import runs  # noqa: E402
import tables  # noqa: E402

SETTING = runs.Run(lora=16, inner="muon", local_steps=5)


def finished(*losses):
    """At the first rates that there are, `losses` of seed 1."""
    return {dataclasses.replace(SETTING, rate=rate): line(loss) for rate, loss in zip(runs.RATES, losses)}


def line(loss, accuracy=0.5):
    return {"loss": loss, "accuracy": accuracy, "sent_mb": 1.2, "received_mb": 3.6}


class UntriedTest(unittest.TestCase):
    def rates(self, known):
        return [run.rate for run in runs.untried(known, SETTING)]

    def test_begins_with_three_neighbours(self):
        self.assertEqual(self.rates({}), [1e-3, 3e-3, 1e-2])

    def test_goes_on_beyond_the_best(self):
        self.assertEqual(self.rates(finished(3, 2, 1)), [3e-3])

    def test_ends_between_worse_neighbours(self):
        self.assertEqual(self.rates(finished(3, 1, 2)), [])

    def test_ends_at_the_ends_of_the_rates(self):
        self.assertEqual(self.rates(finished(1, 2)), [])

    def test_is_tuned_on_the_first_seed(self):
        known = finished(3, 1, 2) | {dataclasses.replace(SETTING, rate=1e-2, seed=2): line(0)}
        self.assertEqual(self.rates(known), [])


class OthersTest(unittest.TestCase):
    def test_changes_one_key_of_the_better_inner_optimizer(self):
        known = {dataclasses.replace(SETTING, rate=1e-2): line(2), dataclasses.replace(SETTING, inner="adamw", rate=3e-3): line(1)}
        found = runs.others(known)
        self.assertEqual(len(found), len(runs.OTHERS))
        middle = runs.Run(lora=16, inner="adamw", local_steps=5, rate=3e-3)
        for run, change in zip(found, runs.OTHERS):
            self.assertEqual(run, dataclasses.replace(middle, **change))


class TablesTest(unittest.TestCase):
    def test_gives_mean_and_range_at_best_rate(self):
        known = finished(3, 1, 2) | {dataclasses.replace(SETTING, rate=3e-4, seed=2): line(2, 0.7)}
        last = tables.main_table(known, lora=16).splitlines()[-1]
        self.assertEqual(last, "| deltas, H = 5 | 0.0001, 0.0003, 0.001 | 0.0003 | 60.0 % (50.0 to 70.0) | 1.500 | 10 kB | 30 kB |")

    def test_says_what_was_not_run(self):
        known = finished(3, 1, 2) | {dataclasses.replace(SETTING, rate=3e-4, kept=8): line(2)}
        known[dataclasses.replace(SETTING, inner="adamw", rate=1e-3)] = line(4)
        lines = tables.others_table(known).splitlines()
        self.assertIn("| LoRA, rank 16, H = 5, K = 8 | 50.0 % | 2.000 | 10 kB | 30 kB |", lines)
        self.assertIn("| LoRA, rank 64, H = 5 | not run yet |  |  |  |", lines)


if __name__ == "__main__":
    unittest.main()
