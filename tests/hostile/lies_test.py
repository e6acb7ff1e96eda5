"""An aggregator that lies to its workers: a worker in Python behaves as one in C++. It ends with an error that says why, or goes
on, and has the parameters of before the lie."""
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

import processes  # noqa: E402
from client import payload  # noqa: E402
from client.messages import pb  # noqa: E402
from relay import Relay  # noqa: E402

PYTHON = os.environ["DISTRO_TORCH_PYTHON"]
PACKAGE = os.environ["DISTRO_PYTHON_PACKAGE"]
ROUND = 5  # of the lie
SAID = "as the aggregator puts it"


def changed(kind, change, times=1 << 30):
    """A lie about the frames of one kind in ROUND: change(frame), so many times."""
    left = [times]

    def lie(frames):
        for frame in frames:
            if frame.round == ROUND and frame.HasField(kind) and left[0] > 0:
                left[0] -= 1
                change(frame)
            yield frame
    return lie


def with_header(change):
    """A commit whose header is change(header)."""
    def changed_commit(frame):
        header = pb.RoundHeader.FromString(frame.commit.header)
        change(header)
        frame.commit.header = header.SerializeToString()
    return changed_commit


def other_predecessor(header):
    header.predecessor_hash ^= 1


def broken_result(frames):
    """Half of a body in a frame that is right, and that the header lists."""
    broken = {}
    for frame in frames:
        if frame.round == ROUND and frame.HasField("segment") and frame.segment.segment == 0:
            body = payload.unframe(frame.segment.data)[1]
            broken = frame.segment.data = payload.with_body(frame.segment.data, body[:len(body) // 2])
            frame.segment.payload_bytes = len(broken)
        elif frame.round == ROUND and frame.HasField("commit"):
            def list_it(header):
                header.segments[0].payload_bytes, header.segments[0].checksum = len(broken), payload.checksum(broken)
            with_header(list_it)(frame)
        yield frame


def truncated(frame):
    frame.segment.data = frame.segment.data[:-1]
    frame.segment.payload_bytes -= 1


def oversized(frame):
    frame.segment.payload_bytes = 1 << 40


def other_method(frame):
    del frame.open.step.deltas.inner_rate_bits[0]


def far_ahead(message):
    message.epoch = (1 << 64) - 1


def of_any_size(answer):
    answer.snapshot.size_bytes = 1 << 62


def from_round(directive, reason=SAID):
    """A lie about heartbeats."""
    def lie(answer):
        if answer.head_round > ROUND:
            answer.directive, answer.reason = directive, reason
        return answer
    return lie


def from_answer(first, change, times=1 << 30):
    """A lie about the answers from number `first` on: change(answer), so many times."""
    numbers = itertools.count()

    def lie(answer):
        if first <= next(numbers) < first + times:
            change(answer)
        return answer
    return lie


def other_state(answer):
    answer.snapshot.state_hash ^= 1


def other_model(answer):
    answer.manifest_hash = bytes(32)


def flipped(frames):
    for frame in frames:
        frame.data = frame.data[:-1] + bytes([frame.data[-1] ^ 1])
        yield frame


class LiesTest(processes.ProcessTest):
    @classmethod
    def setUpClass(cls):
        """One program in Python for all tests: PyTorch takes seconds to load."""
        space = processes.Workspace(cls.binaries)
        cls.addClassCleanup(space.close)
        cls.model = space.init_model()
        cls.python_log = tempfile.TemporaryFile("w+", dir=space.folder)
        cls.addClassCleanup(cls.python_log.close)
        cls.python = subprocess.Popen(
            [*processes.ENDS_WITH_US, PYTHON, "-B", HERE / "lied_to.py", space.folder / "config.json", space.text], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=cls.python_log,
            env={**os.environ, "PYTHONPATH": PACKAGE, "TMPDIR": str(space.folder)})
        cls.addClassCleanup(cls.python.wait)
        cls.addClassCleanup(cls.python.stdout.close)
        cls.addClassCleanup(cls.python.stdin.close)

    def log_of_python(self):
        self.python_log.seek(0)
        return self.python_log.read()

    def lie_to(self, name, lies, **overrides):
        """The way to an aggregator with a run of one worker; that aggregator's data."""
        space = self.workspace
        data_dir = space.folder / f"data-{name}"
        aggregator = space.start_aggregator("--run", space.write_run(**{"rounds": 100000, "start_workers": 1, **overrides}),
                                            "--model", self.model, log_name=f"aggregator-{name}", data_dir=data_dir)
        relay = Relay(aggregator.grpc, **lies)
        self.addCleanup(relay.close)
        return relay, data_dir

    def both(self, make_lies, **overrides):
        """(a worker in C++ and how one in Python ended, the ways of both), each in a run of its own."""
        ways = [self.lie_to(name, make_lies(), **overrides) for name in ("native", "python")]
        native = self.workspace.start_worker("worker", ways[0][0].address)
        self.python.stdin.write(ways[1][0].address + "\n")
        self.python.stdin.flush()
        line = self.python.stdout.readline()
        self.assertTrue(line, self.log_of_python())
        return native, json.loads(line), ways

    def honest_states(self, way, data_dir):
        """The parameters before the last uploaded round, and after all rounds of the log."""
        replayed = self.workspace.distroctl("log", "replay", "--data_dir", data_dir)
        return f"{way.uploads[-1].state_hash:016x}", re.search(r"^state +(\S+)$", replayed, re.M)[1]

    def expect_end(self, make_lies, code, error, says, remedy=""):
        """Of both, for the same reason."""
        native, told, ways = self.both(make_lies)
        self.assertEqual(native.exit_code(), code, native.log())
        self.assertIn(says, native.log().replace("\\\\", "\\"))  # its quotes
        self.assertEqual(told["error"], error, told)
        self.assertIn(says, told["message"])
        self.assertIn(remedy, told["message"])
        self.assertTrue(told["module_is_the_runs"])
        return native, told, ways

    def expect_end_of_step(self, *expected, of_result=False):
        """In a step, with parameters that the run has had; `of_result`: with those before the round of the lie."""
        native, told, ways = self.expect_end(*expected)
        self.assertEqual(told["raised_by"], "step")
        for state, (way, data_dir) in zip((native.summary()["state_hash"], told["state"]), ways):
            sent, logged = self.honest_states(way, data_dir)
            self.assertIn(state, (sent,) if of_result else (sent, logged))
            if of_result:
                self.assertEqual(way.uploads[-1].round, ROUND)

    def expect_no_join(self, *expected):
        _, told, _ = self.expect_end(*expected)
        self.assertEqual(told["raised_by"], "connect")

    def expect_to_go_on(self, make_lies, says="invalid frame"):
        before = self.log_of_python().count(says) if says else 0
        native, told, ways = self.both(make_lies, rounds=12)
        self.assertEqual(native.exit_code(), 0, native.log())
        self.assertEqual((told["error"], told["module_is_the_runs"]), ("NoneType", True), told)
        if says:
            self.assertIn(says, native.log())
            self.assertGreater(self.log_of_python().count(says), before)
        for state, way in zip((native.summary()["state_hash"], told["state"]), ways):
            self.assertEqual(state, self.honest_states(*way)[1])

    def test_ends_step_on_broken_result(self):
        self.expect_end_of_step(lambda: {"SubscribeRounds": broken_result}, 2, "Error", f"round {ROUND}: segment 0",
                                of_result=True)

    def test_ends_step_on_log_with_gap(self):
        self.expect_end_of_step(lambda: {"SubscribeRounds": changed("commit", with_header(other_predecessor))}, 5, "Diverged",
                                f"round {ROUND} continues a log with hash", "test the memory and the disk", of_result=True)

    def test_ends_step_on_other_run(self):
        self.expect_end_of_step(lambda: {"SubscribeRounds": changed("commit", with_header(other_predecessor)),
                                         "Join": from_answer(1, other_model)}, 3, "OtherRun", "has other tensors now",
                                "check the address", of_result=True)

    def test_steps_of_another_method(self):
        self.expect_end_of_step(lambda: {"SubscribeRounds": changed("open", other_method)}, 2, "Error",
                                f"round {ROUND}: the aggregator's step")

    def test_ends_step_on_quarantine(self):
        self.expect_end_of_step(lambda: {"Heartbeat": from_round(pb.DIRECTIVE_QUARANTINED)}, 7, "Quarantined", SAID,
                                "distroctl admit")

    def test_ends_step_on_replacement(self):
        self.expect_end_of_step(lambda: {"Heartbeat": from_round(pb.DIRECTIVE_REPLACED)}, 4, "Replaced",
                                "a newer process has joined with the name worker", "a name of its own")

    def test_fails_join_on_other_state(self):
        self.expect_no_join(lambda: {"Join": from_answer(0, other_state)}, 1, "Error", "has state hash")

    def test_fails_join_on_damage(self):
        self.expect_no_join(lambda: {"DownloadSnapshot": flipped}, 2, "Error", "snapshot")

    def test_fails_join_on_huge_snapshot(self):
        self.expect_no_join(lambda: {"Join": from_answer(0, of_any_size)}, 2, "Error",
                            f"a snapshot of {1 << 62} bytes is not one of the run's model")

    def test_cuts_long_reason(self):
        long = "\u202e\x1b[2J\n" + 900_000 * "x"
        native, told, _ = self.expect_end(
            lambda: {"Heartbeat": from_round(pb.DIRECTIVE_QUARANTINED, long)}, 7, "Quarantined", "\\u202e\\x1b[2J\\nxxx")
        for text in (native.log(), told["message"]):
            self.assertIn("(900008 bytes)", text)
            self.assertLess(max(map(len, text.splitlines())), 3000)
            self.assertNotIn("\u202e", text)
            self.assertNotIn("\x1b", text)

    def test_drops_epoch_of_far_future(self):
        self.expect_to_go_on(lambda: {"SubscribeRounds": changed("open", far_ahead, times=2),
                                      "Heartbeat": from_answer(3, far_ahead, times=2)}, says=None)

    def test_drops_join_of_far_future(self):
        self.expect_to_go_on(lambda: {"Join": from_answer(0, far_ahead, times=1)}, says=None)

    def test_asks_again_for_truncated_result(self):
        self.expect_to_go_on(lambda: {"SubscribeRounds": changed("segment", truncated, times=3)})

    def test_asks_again_for_oversized_result(self):
        self.expect_to_go_on(lambda: {"SubscribeRounds": changed("segment", oversized, times=3)})


if __name__ == "__main__":
    processes.main()
