"""Calls of a worker, an archiver or an operator, and a worker's session: join, snapshot, log, uploads (docs/protocol.md)."""
import contextlib
import pathlib
import secrets
import threading

import grpc

from client import payload as payloads
from client.gaps import encode_gaps
from client.messages import grpc_stubs, pb
from client.replica import Replica

FRAME_BYTES = 512 << 10
CALL_SECONDS = 20


def reason_of(error):
    """The word of docs/protocol.md that a refused call came with; "" when there is none."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            with contextlib.suppress(Exception):
                return pb.ErrorDetail.FromString(value).reason
    return ""


def connect(address, ca, token=None):
    """(channel, metadata of its calls)."""
    if ca is None:
        return grpc.insecure_channel(address), ()
    credentials = grpc.ssl_channel_credentials(pathlib.Path(ca).read_bytes())
    options = (("grpc.use_local_subchannel_pool", 1),)
    return grpc.secure_channel(address, credentials, options), (("authorization", f"Bearer {token}"),) if token else ()


class Caller:
    """Calls with one credential over one connection."""

    def __init__(self, address, ca, token=None):
        self.channel, self._metadata = connect(address, ca, token)
        self.aggregator = grpc_stubs.AggregatorServiceStub(self.channel)
        self.admin = grpc_stubs.AdminServiceStub(self.channel)

    def close(self):
        self.channel.close()

    def call(self, method, request, seconds=CALL_SECONDS):
        return method(request, metadata=self._metadata, timeout=seconds)

    def get_run(self):
        return self.call(self.admin.GetRun, pb.GetRunRequest())

    def download(self, info):
        frames = self.call(self.aggregator.DownloadSnapshot, pb.DownloadSnapshotRequest(sha256=info.sha256))
        return b"".join(frame.data for frame in frames)

    def subscribe(self, run_id, from_round, last_hash, worker=None, seconds=None):
        request = pb.SubscribeRoundsRequest(worker=worker, run_id=run_id, from_round=from_round, last_hash=last_hash)
        return self.call(self.aggregator.SubscribeRounds, request, seconds)

    def report_state(self, run_id, round_number, log_hash, tensor_hashes):
        self.call(self.aggregator.ReportState, pb.ReportStateRequest(run_id=run_id, round=round_number, log_hash=log_hash,
                                                                     tensor_hashes=tensor_hashes))

    def upload_snapshot(self, run_id, info, data):
        """The SnapshotInfo that was stored; RpcError when it was refused."""
        offset = threading.Event()
        begin = []

        def requests():
            yield pb.UploadSnapshotRequest(header=pb.UploadSnapshotHeader(run_id=run_id, snapshot=info))
            offset.wait(CALL_SECONDS)
            for at in range(begin[0] if begin else len(data), len(data), FRAME_BYTES):
                yield pb.UploadSnapshotRequest(frame=pb.SnapshotFrame(offset=at, data=data[at:at + FRAME_BYTES]))
        try:
            for answer in self.call(self.aggregator.UploadSnapshot, requests()):
                if answer.HasField("stored"):
                    return answer.stored
                begin.append(answer.offset)
                offset.set()
        finally:
            offset.set()
        return None


class Worker(Caller):
    """A worker that follows the log and takes part with votes of its own making. `version` is a worker's, "major.minor.patch"."""

    def __init__(self, address, ca, token, name, fingerprint, version):
        super().__init__(address, ca, token)
        self.identity = pb.WorkerIdentity(name=name, incarnation=secrets.randbits(64))
        self._fingerprint, self._version, self._sequence = fingerprint, version, 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.directives = []

    def join(self):
        request = pb.JoinRequest(worker=self.identity, version=self._version, data_fingerprint=self._fingerprint)
        self.run = self.call(self.aggregator.Join, request)
        self.layout = self.run.manifest_hash[:8]
        self.epoch = self.run.epoch
        self.replica = Replica(self.download(self.run.snapshot), self.run.config.segment_blocks)
        self.next_round, self.log_hash = self.run.snapshot.round, self.run.snapshot.log_hash
        return self.run

    def heartbeat(self):
        with self._lock:
            self._sequence += 1
            request = pb.HeartbeatRequest(worker=self.identity, sequence=self._sequence, next_round=self.next_round,
                                          log_hash=self.log_hash, epoch=self.epoch)
        answer = self.call(self.aggregator.Heartbeat, request)
        self.directives.append(answer.directive)
        return answer

    def _beat(self):
        while not self._stop.wait(self.run.heartbeat_interval.ToNanoseconds() / 1e9):
            with contextlib.suppress(grpc.RpcError):
                self.heartbeat()

    def leave(self):
        self._stop.set()
        with contextlib.suppress(grpc.RpcError):
            self.call(self.aggregator.Leave, pb.LeaveRequest(worker=self.identity, reason="done"))

    def rounds(self):
        """Yields (round, RoundOpen) while it follows; ends with the run. After each a caller may upload."""
        self.heartbeat()
        beats = threading.Thread(target=self._beat, daemon=True)
        beats.start()
        results, step, opened = {}, None, None
        try:
            for frame in self.subscribe(self.run.run_id, self.next_round, self.log_hash, self.identity):
                self.epoch = max(self.epoch, frame.epoch)
                if frame.HasField("open"):
                    opened, results = frame.round, {}
                    yield frame.round, frame.open
                elif frame.HasField("segment"):
                    part = frame.segment
                    results.setdefault(part.segment, bytearray(part.payload_bytes))[part.offset:part.offset + len(part.data)] = part.data
                else:
                    self._commit(frame, results)
                    results = {}
                    if opened != frame.round:
                        self.heartbeat()
        finally:
            self._stop.set()

    def _commit(self, frame, results):
        header = pb.RoundHeader.FromString(frame.commit.header)
        if header.predecessor_hash != self.log_hash and self.next_round > self.run.snapshot.round:
            raise ValueError(f"round {header.round} does not continue the chain")
        self.replica.apply([bytes(results[segment]) for segment in sorted(results)], header.step)
        with self._lock:
            self.next_round, self.log_hash = header.round + 1, payloads.checksum(frame.commit.header)
        self.last_header = header

    def payload(self, round_number, segment, blocks, k):
        """Of an update: records up to K = 8, gaps above."""
        if k <= 8:
            kind, body = payloads.RECORDS, payloads.encode_records(blocks, k)
        else:
            kind, body = payloads.UPDATE_GAPS, encode_gaps(blocks)
        return payloads.frame(kind, k, self.layout, round_number, segment, len(blocks), body)

    def upload(self, round_number, segments, **header):
        """Sends {segment: payload}; the segments that were acknowledged. RpcError when it was refused."""
        held = threading.Event()

        def requests():
            hashes = self.replica.tensor_hashes()
            yield pb.UploadUpdateRequest(header=pb.UploadHeader(**{
                "worker": self.identity, "epoch": self.epoch, "round": round_number, "state_hash": self.replica.state_hash(),
                "tensor_hashes": hashes, "loss": 5.0, **header}))
            held.wait(CALL_SECONDS)
            for segment, data in segments.items():
                for at in range(0, len(data), FRAME_BYTES):
                    yield pb.UploadUpdateRequest(frame=pb.UploadFrame(segment=segment, offset=at, payload_bytes=len(data),
                                                                      data=data[at:at + FRAME_BYTES]))
        acknowledged = []
        try:
            for answer in self.call(self.aggregator.UploadUpdate, requests()):
                if answer.HasField("ack"):
                    acknowledged.append(answer.ack.segment)
                held.set()
                if len(acknowledged) == len(segments):
                    break
        finally:
            held.set()
        return acknowledged


def random_blocks(random, count, k):
    """Votes of `count` blocks: K positions each, or none."""
    return [[(position, random.choice((-1, 1))) for position in sorted(random.sample(range(payloads.POSITIONS), k))]
            for _ in range(count)]
