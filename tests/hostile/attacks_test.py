"""The attacks that need seconds; scripts/hostile has all of them, for longer."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import hostile  # noqa: E402
from attacks import ATTACKS  # noqa: E402
from bed import Suite  # noqa: E402
import processes  # noqa: E402

SECONDS = 4
CALM = {"cores": 0.5, "rounds_per_second": 1.0}  # rounds may cost what they cost: only scripts/hostile compares processor time


class AttacksTest(unittest.TestCase):
    binaries = None

    @classmethod
    def setUpClass(cls):
        cls.suite = Suite(cls.binaries)
        cls.addClassCleanup(cls.suite.close)

    def holds(self, name, seconds=SECONDS):
        row = hostile.try_attack(self.suite, ATTACKS[name], seconds, False, CALM)
        if "skipped" in row:
            self.skipTest(row["skipped"])
        self.assertEqual(row["faults"], [], row)

    def test_archiver_alone_changes_nothing(self):
        self.holds("archiver_poison")

    def test_silent_connections_keep_nobody_out(self):
        self.holds("silent_connections", 12)

    def test_messages_are_not_inflated(self):
        self.holds("bomb")

    def test_reflection_takes_no_threads(self):
        self.holds("reflection_streams")

    def test_header_blocks_in_crumbs(self):
        self.holds("hpack_integer")

    def test_bodies_are_refused_by_http(self):
        self.holds("http_post")

    def test_broken_gaps_are_refused(self):
        self.holds("broken_gaps", 40)

    def test_read_only_folder_holds_commit(self):
        self.holds("read_only")


if __name__ == "__main__":
    AttacksTest.binaries = processes.programs_in(sys.argv.pop(1))
    unittest.main(verbosity=2)
