"""bench/links at a small size: workers behind links make a run, what the links carried is counted, and what a round takes at least
follows from it."""
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[3] / "bench/links"), str(HERE.parents[1])]
import links  # noqa: E402
import processes  # noqa: E402
import shaped_links  # noqa: E402
import training  # noqa: E402
from binaries import BIN  # noqa: E402


class LinksTest(unittest.TestCase):
    def test_fills_row_of_table(self):
        blocks, segment_blocks = 2000, 500
        try:
            measured = links.measure(BIN, 2, up=2, down=4, slowest_up=1, queue="100ms", rounds=2, blocks=blocks,
                                     segment_blocks=segment_blocks)
        except shaped_links.Refused as reason:
            self.skipTest(str(reason))
        self.assertGreater(measured["sent"], 6 * blocks)
        self.assertGreater(measured["seconds"], 8 * 6 * blocks / 1e6 / 2)  # the upload at 1 Mbps, without what may burst
        row = links.row("2 up", 2, measured)
        self.assertEqual(row.count("|"), links.HEADER.count("|"), row)

    def test_training_goes_on_while_its_links_change(self):
        training.MODEL = {}
        binaries = processes.programs_in(BIN)
        try:
            fast, slow, up = training.measure(binaries, overlap=1, phase=5)
        except shaped_links.Refused as reason:
            self.skipTest(str(reason))
        self.assertEqual((len(fast), len(slow)), (2, 2))
        self.assertGreater(up, 0)
        row = training.row(1, fast, slow, up)
        self.assertEqual(row.count("|"), training.HEADER.count("|"), row)

    def test_adds_segment_to_longer_way(self):
        self.assertEqual(links.least_seconds(up_bytes=100, down_bytes=500, up=100, down=1000, segments=4), (8, 1))
        self.assertEqual(links.least_seconds(up_bytes=100, down_bytes=500, up=800, down=800, segments=5), (5, 0.2))


if __name__ == "__main__":
    unittest.main()
