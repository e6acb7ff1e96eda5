"""bench/aggregator_load at a small size: its workers take part in every round, all of them see the same rounds, and its figures are
what the rounds say."""
import pathlib
import struct
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[3] / "bench/aggregator_load"), str(HERE.parents[1])]
import load  # noqa: E402
import load_run  # noqa: E402
from binaries import BIN  # noqa: E402

BLOCKS, SEGMENT_BLOCKS = 40, 16
SMALL = {"blocks": BLOCKS, "segment_blocks": SEGMENT_BLOCKS}
SMALL_DELTAS = SMALL | {"blocks": 39}
LIMIT_SECONDS = 100


def a_round(number, *segments, **other):
    return {"round": number, "hash": "1", "result_bytes": 3, "opened": 1, "committed": 2, "segments": list(segments), **other}


def write_update(file, blocks, votes):
    """Votes for the first positions of every block, as bench/wire/plain_votes.h has them."""
    block = [votes] + [number for position in range(votes) for number in (position, 1)]
    file.write_bytes(struct.pack(f"<{len(block)}H", *block) * blocks)


class LoadTest(unittest.TestCase):
    def test_workers_of_two_processes_make_a_run(self):
        with load_run.Load(BIN, 4, rounds=4, keep=0, **SMALL) as run:
            rounds = run.result([run.start(first=0, count=3), run.start(first=3, count=1)], LIMIT_SECONDS)
            included = [run.aggregator.metric("distro_aggregator_worker_included_updates_total", worker=f"load-000{i}") for i in range(4)]
        self.assertEqual(included, [4] * 4)
        self.assertEqual([one["round"] for one in rounds], [0, 1, 2, 3])
        self.assertEqual(len({one["hash"] for one in rounds}), 4)
        for one in rounds:
            self.assertLess(one["opened"], one["committed"])
            for sent, acknowledged, first, last in one["segments"]:
                self.assertLessEqual(one["opened"], sent)
                self.assertLess(one["opened"], acknowledged)
                self.assertLess(one["opened"], first)
                self.assertLessEqual(first, last)

    def test_top_is_smaller(self):
        sizes = []
        for keep in (0, 2):
            with load_run.Load(BIN, 4, rounds=1, keep=keep, **SMALL) as run:
                sizes.append(run.result([run.start()], LIMIT_SECONDS)[0]["result_bytes"])
        self.assertLess(sizes[1], sizes[0])

    def test_fills_row_of_table(self):
        measured = load.measure(BIN, 2, 0, 2, **SMALL)
        self.assertEqual(measured["up"], 6 * BLOCKS + 3 * 48)
        self.assertGreater(measured["floor"], 0)
        row = load.row("random", 2, 0, measured)
        self.assertEqual(row.count("|"), load.HEADER.count("|"), row)

    def test_workers_of_deltas_make_a_run(self):
        with load_run.Load(BIN, 4, rounds=4, keep=0, method="deltas", **SMALL_DELTAS) as run:
            rounds = run.result([run.start(first=0, count=3), run.start(first=3, count=1)], LIMIT_SECONDS)
            included = [run.aggregator.metric("distro_aggregator_worker_included_updates_total", worker=f"load-000{i}") for i in range(4)]
        self.assertEqual(included, [4] * 4)
        self.assertEqual(len({one["hash"] for one in rounds}), 4)

    def test_deltas_stay_below_the_caps(self):
        """Rates so small that what is random would be above them: then the aggregator refuses, and the worker ends."""
        rates = {"peak_learning_rate": 1e-8, "min_learning_rate": 1e-9}
        with load_run.Load(BIN, 3, rounds=3, keep=0, method="deltas", **SMALL_DELTAS, **rates) as run:
            self.assertEqual(len(run.result([run.start()], LIMIT_SECONDS)), 3)

    def test_fills_row_of_deltas(self):
        measured = load.measure(BIN, 2, 0, 2, method="deltas", **SMALL_DELTAS)
        self.assertGreater(measured["up"], 32 * SMALL_DELTAS["blocks"])
        self.assertGreater(measured["down"], measured["up"])
        row = load.row("deltas, random", 2, 0, measured)
        self.assertEqual(row.count("|"), load.HEADER.count("|"), row)

    def test_recorded_updates_are_of_signs(self):
        with tempfile.TemporaryDirectory() as folder:
            with load_run.Load(BIN, 2, rounds=1, keep=0, recorded=folder, method="deltas", **SMALL_DELTAS) as run:
                with self.assertRaisesRegex(AssertionError, "--recorded: are of signs"):
                    run.result([run.start()], LIMIT_SECONDS)

    def test_recorded_workers_agree_as_they_did(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("one", "other"):
                write_update(pathlib.Path(folder) / name, blocks=7, votes=4)
            with load_run.Load(BIN, 2, rounds=1, keep=0, **SMALL) as run:
                disagreeing = run.result([run.start()], LIMIT_SECONDS)[0]["result_bytes"]
            with load_run.Load(BIN, 2, rounds=1, keep=0, recorded=folder, **SMALL) as run:
                agreeing = run.result([run.start()], LIMIT_SECONDS)[0]["result_bytes"]
        self.assertLess(agreeing, disagreeing)

    def test_recorded_updates_of_another_k_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            write_update(pathlib.Path(folder) / "one", blocks=7, votes=3)
            with load_run.Load(BIN, 2, rounds=1, keep=0, recorded=folder, **SMALL) as run:
                with self.assertRaisesRegex(AssertionError, "block 0 has 3 votes, the run's K is 4"):
                    run.result([run.start()], LIMIT_SECONDS)

    def test_refuses_other_layout(self):
        with load_run.Load(BIN, 2, rounds=1, keep=0, **SMALL) as run:
            run.blocks += 1
            with self.assertRaisesRegex(AssertionError, "the run's model is another"):
                run.result([run.start()], LIMIT_SECONDS)


class ModelTest(unittest.TestCase):
    def test_has_blocks_that_were_asked_for(self):
        for blocks in (12, 39, load_run.REPORT_BLOCKS):
            _, tensors = load_run.narrow_llama(blocks)
            self.assertEqual(sum(-(-shape[0] // 64) * -(-shape[-1] // 64) if len(shape) > 1 else 1 for shape in tensors.values()), blocks)

    def test_other_blocks_are_refused(self):
        with self.assertRaisesRegex(ValueError, "no narrow Llama has 40 blocks"):
            load_run.narrow_llama(40)


class FiguresTest(unittest.TestCase):
    def test_processes_are_merged(self):
        merged = load_run.merge([[a_round(0, [1, 2, 5, 8], opened=2, committed=3)], [a_round(0, [2, 1, 4, 9])]])
        self.assertEqual(merged, [a_round(0, (2, 2, 4, 9), opened=1, committed=3)])

    def test_processes_that_saw_other_rounds_are_an_error(self):
        with self.assertRaisesRegex(AssertionError, "round 0: chain hashes"):
            load_run.merge([[a_round(0, [1, 2, 3, 4])], [a_round(0, [1, 2, 3, 4], hash="2")]])

    def test_leaves_out_first_round(self):
        rounds = [a_round(0, (0, 50, 100, 200)), a_round(1, (10, 12, 11, 15), (13, 14, 14, 16), committed=5)]
        self.assertEqual(load_run.segment_delays(rounds), ([1, 1], [5, 3]))
        self.assertEqual(load_run.seconds_a_round(rounds), 3)
        self.assertEqual(load_run.early_share(rounds), 1)


if __name__ == "__main__":
    unittest.main()
