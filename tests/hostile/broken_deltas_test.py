"""Updates of deltas that are broken in one way each, between whole ones, with the credential of a worker that takes part."""
import itertools
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

import grpc  # noqa: E402
import processes  # noqa: E402
from client import payload as payloads  # noqa: E402
from client.messages import pb  # noqa: E402
from client.session import reason_of  # noqa: E402
from relay import SERVICE, Relay  # noqa: E402

BROKEN_IN_A_ROUND = 2  # the third is quarantine
PARTS = 12
HEAD = payloads.HEADER.size


def flipped(whole, part, bit):
    """A bit of the body changed, and a checksum that holds."""
    at = HEAD + part * (len(whole) - 8 - HEAD) // PARTS
    return payloads.with_bytes(whole, at, bytes([whole[at] ^ 1 << bit]))


def breakages(whole, before):
    """(name, payload) of each way. `before`: the same segment's of an earlier round."""
    fields = payloads.HEADER.unpack_from(whole)
    k, number, segment, blocks = fields[3], fields[5], fields[6], fields[7]
    body = whole[HEAD:-8]
    yield "checksum", whole[:-1] + bytes([whole[-1] ^ 1])
    yield "nothing", b""
    yield "a header alone", whole[:HEAD]
    yield "truncated", whole[:-1]
    yield "a byte more", whole + b"\0"
    yield "magic", payloads.with_bytes(whole, 0, b"DSTQ")
    yield "version 2", payloads.with_bytes(whole, 4, b"\2")
    for kind in (payloads.RECORDS, payloads.UPDATE_GAPS, payloads.VOTES, 5, 255):
        yield f"kind {kind}", payloads.with_bytes(whole, 5, bytes([kind]))
    yield "K - 1 in the header", payloads.with_bytes(whole, 6, struct.pack("<H", k - 1))
    yield "K of 65535", payloads.with_bytes(whole, 6, b"\xff\xff")
    yield "another layout", payloads.with_bytes(whole, 8, bytes(8))
    yield "another round", payloads.with_bytes(whole, 16, struct.pack("<Q", number + 1))
    yield "an update of an earlier round", before
    yield "another segment", payloads.with_bytes(whole, 24, struct.pack("<I", segment + 1))
    yield "a block more", payloads.with_bytes(whole, 28, struct.pack("<I", blocks + 1))
    yield "blocks of 2^32 - 1", payloads.with_bytes(whole, 28, b"\xff" * 4)
    yield "length of 2^64 - 1", payloads.with_bytes(whole, 32, b"\xff" * 8)
    yield "no body", payloads.with_body(whole, b"")
    yield "half a body", payloads.with_body(whole, body[:len(body) // 2])
    yield "a body twice", payloads.with_body(whole, body + body)
    yield "a body of zeros", payloads.with_body(whole, bytes(len(body)))
    yield "a body of ones", payloads.with_body(whole, b"\xff" * len(body))
    yield "a byte after the groups", payloads.with_body(whole, body + b"\0")
    for part in range(PARTS):
        yield f"a bit in part {part} of {PARTS}", flipped(whole, part, part % 8)


def may_be_an_update(name):
    """A sign, or the raw bits of a gap, make another whole update."""
    return name.startswith("a bit in part")


class Breaker(Relay):
    """Sends broken payloads of the first segment that a worker sends in a round, then what the worker sends. `outcomes`: what became
    of each way."""

    def __init__(self, target):
        super().__init__(target)
        self.outcomes = {}
        self._ways, self._before = {"any"}, {}

    def _upload(self, requests, context):
        """One stream of a name may be open: so the worker is told here that nothing is held, and its stream begins behind ours."""
        header = pb.UploadUpdateRequest.FromString(next(requests))
        yield pb.UploadUpdateResponse(held=pb.UploadHeld()).SerializeToString()
        first = pb.UploadUpdateRequest.FromString(next(requests))
        self._break(header.header, first.frame)
        begin = (header.SerializeToString(), first.SerializeToString())
        for answer in super()._upload(itertools.chain(begin, requests), context):
            if not pb.UploadUpdateResponse.FromString(answer).HasField("held"):
                yield answer

    def _break(self, header, frame):
        """What was taken as another update replaces the worker's."""
        whole, before = frame.data, self._before.get(frame.segment)
        self._before[frame.segment] = whole
        if before is None:
            return
        ways = dict(breakages(whole, before))
        self._ways = ways.keys()
        for name in self.untried()[:BROKEN_IN_A_ROUND]:
            self.outcomes[name] = self._outcome_of(header, frame.segment, ways[name])
            if self.outcomes[name] == "accepted":
                frame.data, frame.payload_bytes = ways[name], len(ways[name])
                return

    def _outcome_of(self, header, segment, data):
        frame = pb.UploadFrame(segment=segment, offset=0, payload_bytes=len(data), data=data)
        requests = (pb.UploadUpdateRequest(header=header), pb.UploadUpdateRequest(frame=frame))
        call = self._channel.stream_stream(f"/{SERVICE}/UploadUpdate")(request.SerializeToString() for request in requests)
        try:
            answers = [pb.UploadUpdateResponse.FromString(answer) for answer in call]
        except grpc.RpcError as error:
            return f"{error.code().name} {reason_of(error)}".strip()
        return "accepted" if any(answer.HasField("ack") for answer in answers) else "no answer"

    def untried(self):
        return sorted(self._ways - self.outcomes.keys())


class BrokenDeltasTest(processes.ProcessTest):
    def test_is_refused_and_run_goes_on(self):
        space = self.workspace
        aggregator = space.start_aggregator("--run", space.write_run(start_workers=2, probation_rounds=0), "--model",
                                            space.init_model())
        breaker = Breaker(aggregator.grpc)
        self.addCleanup(breaker.close)
        state = self.finish([space.start_worker("honest", aggregator.grpc), space.start_worker("mallory", breaker.address)])
        self.assertEqual(breaker.untried(), [])
        self.assertEqual({name: outcome for name, outcome in breaker.outcomes.items() if outcome != "INVALID_ARGUMENT malformed"
                          and not (may_be_an_update(name) and outcome == "accepted")}, {})
        self.assertIn(state, space.distroctl("log", "replay", "--data_dir", space.data_dir))


if __name__ == "__main__":
    processes.main()
