"""The client of tests/hostile is a second implementation of the protocol: it makes the bytes of docs/payload_format.md and
follows a real run bit for bit, beside a real worker."""
import pathlib
import random
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from bed import Bed, Suite  # noqa: E402
import processes  # noqa: E402
from client import payload  # noqa: E402
from client.gaps import decode_gaps, encode_gaps  # noqa: E402
from client.messages import pb  # noqa: E402
from client.session import Worker, random_blocks  # noqa: E402

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs/payload_format.md").read_text()
LAYOUT = bytes.fromhex("8877665544332211")


class PayloadTest(unittest.TestCase):
    def of_page(self, name):
        return bytes.fromhex(re.search(rf"```hex {name}\n(.*?)```", PAGE, re.S)[1])

    def test_makes_update_of_page(self):
        blocks = [[(0, 1), (1, -1), (2, 1), (3, 1)], [(10, -1), (64, 1), (700, 1), (4095, -1)], []]
        made = payload.frame(payload.RECORDS, 4, LAYOUT, 5, 2, 3, payload.encode_records(blocks, 4))
        self.assertEqual(made.hex(), self.of_page("update").hex())

    def test_makes_votes_of_page(self):
        blocks = [[(0, 2), (1, -1), (700, 1)], [], [(64, 5), (65, -1), (4095, 1)]]
        made = payload.frame(payload.VOTES, 0, LAYOUT, 5, 2, 3, encode_gaps(blocks))
        self.assertEqual(made.hex(), self.of_page("votes").hex())
        self.assertEqual(decode_gaps(payload.unframe(made)[1], 3), blocks)

    def test_gaps_that_are_read_are_those_that_were_written(self):
        chance = random.Random(1)
        for _ in range(5):
            blocks = [[(position, chance.choice((1, -1, 1, 2, -7, 300))) for position in
                       sorted(chance.sample(range(4096), chance.choice((0, 5, 16, 40))))] for _ in range(chance.randint(1, 600))]
            self.assertEqual(decode_gaps(encode_gaps(blocks), len(blocks)), blocks)


class SessionTest(unittest.TestCase):
    """A run of one real worker and this client, whose updates count: it must hold the same state at the end."""
    binaries = None

    def follow(self, k):
        suite = Suite(self.binaries)
        self.addCleanup(suite.close)
        bed = Bed(suite, workers=1, rounds=12, kept_per_block=k, start_workers=2, probation_rounds=0)
        self.addCleanup(bed.close)
        worker = Worker(bed.aggregator.grpc, suite.secrets.ca, suite.secrets.tokens["mallory"], "mallory", suite.fingerprint,
                        suite.version)
        worker.join()
        chance = random.Random(k)
        included = 0
        for round_number, open_one in worker.rounds():
            segments = worker.replica.segments
            worker.upload(round_number, {
                number: worker.payload(round_number, number, random_blocks(chance, segments[number], k), k)
                for number in ((round_number + i) % len(segments) for i in range(len(segments)))})
        worker.close()
        self.assertNotIn(pb.DIRECTIVE_RESYNC, worker.directives)
        self.assertEqual(worker.next_round, 12)
        self.assertEqual(bed.workers[0].exit_code(), 0)
        self.assertEqual(f"{worker.replica.state_hash():016x}", bed.workers[0].summary()["state_hash"])
        equal, said = bed.replay()
        self.assertTrue(equal, said)
        self.assertIn("members 24 state hashes", said)

    def test_follows_records(self):
        self.follow(4)

    def test_follows_gaps(self):
        self.follow(16)


if __name__ == "__main__":
    SessionTest.binaries = processes.programs_in(sys.argv.pop(1))
    unittest.main(verbosity=2)
