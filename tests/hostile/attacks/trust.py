"""Attacks with a valid credential: an archiver's false reports, a worker's floods."""
import re
import threading
import time

import grpc

from attacks.registry import attack

OLD_ROUNDS, BEGIN_ROUND = (3, 5), 90  # reference states of the newest 64 rounds are kept by the aggregator
CALLS_PER_SECOND = 500
ACCEPTED = "accepted"


def chain_hashes(archiver, run, rounds):
    """{round: chain hash of the record before it}, from the log."""
    from client.payload import checksum
    found = {}
    for frame in archiver.subscribe(run.run_id, 0, run.snapshots[-1].log_hash, seconds=30):
        if frame.HasField("commit"):
            found[frame.round + 1] = checksum(frame.commit.header)
            if frame.round + 1 >= max(rounds):
                return found
    return found


def try_to(told, what, action):
    try:
        action()
        told[what] = ACCEPTED
    except grpc.RpcError as error:
        from client.session import reason_of
        told[what] = f"{error.code().name} {reason_of(error)}".strip()


def archiver_outcome(bed, told):
    faults = [f"{what} was {said}" for what, said in told.items() if "snapshot" in what and said == ACCEPTED]
    if told.get("round 0") == ACCEPTED:
        faults.append("a false report for round 0 was accepted")
    pruned = [path.name for path in bed.data_dir.glob("rounds/0*.record") if path.read_bytes()[12] in (3, 4)]
    if pruned:
        faults.append(f"the results of rounds were dropped: {', '.join(pruned)}")
    if re.search(r'worker changed worker=honest-\w state=joining .*reason="resync', bed.aggregator.log()):
        faults.append("honest workers were made to resync")
    return faults + ([] if bed.joins("fresh-a", 20) else ["a fresh worker cannot join"])


@attack("archiver_poison", "an archiver's credential: false states of old and recent rounds, two snapshots of poisoned parameters",
        credential="archiver", begin_round=BEGIN_ROUND, check=archiver_outcome, seconds=12)
def archiver_poison(target):
    import hashlib

    from client.messages import pb
    from client.replica import Replica, combined_hash
    from client.safetensors import replace_values
    from client.session import Caller
    archiver, told = Caller(target.grpc, target.ca, target.tokens["archiver"]), {}
    run = archiver.get_run()
    initial = archiver.download(run.snapshots[-1])
    recent = run.round - 2
    before = chain_hashes(archiver, run, (*OLD_ROUNDS, recent))
    for round_number in OLD_ROUNDS:
        data = replace_values(initial, lambda values: values * -round_number)
        hashes = Replica(data, run.config.segment_blocks).tensor_hashes()
        info = pb.SnapshotInfo(round=round_number, size_bytes=len(data), sha256=hashlib.sha256(data).digest(),
                               state_hash=combined_hash(hashes), log_hash=before[round_number])
        try_to(told, f"round {round_number}", lambda: archiver.report_state(run.run_id, round_number, before[round_number], hashes))
        try_to(told, f"snapshot {round_number}", lambda: archiver.upload_snapshot(run.run_id, info, data))
    try_to(told, "round 0", lambda: archiver.report_state(run.run_id, 0, run.snapshots[-1].log_hash, hashes))
    try_to(told, "recent round", lambda: archiver.report_state(run.run_id, recent, before[recent], hashes))
    head = archiver.get_run()
    try_to(told, "head", lambda: archiver.report_state(run.run_id, head.round, head.log_hash, hashes))
    time.sleep(2)
    return told


def flood(target, threads, act):
    """act(number) so many times a second from threads; {what it came to: how often}."""
    counts, lock, begin, number = {}, threading.Lock(), time.monotonic(), [0]

    def go():
        while target.goes_on():
            with lock:
                mine = number[0]
                number[0] += 1
            time.sleep(max(0.0, begin + mine / CALLS_PER_SECOND - time.monotonic()))
            try:
                act(mine)
                outcome = "ok"
            except grpc.RpcError as error:
                outcome = error.code().name
            with lock:
                counts[outcome] = counts.get(outcome, 0) + 1
    workers = [threading.Thread(target=go) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return counts


def few_lines(bed, told):
    """The program's log does not get a line per call."""
    lines = told.get("measured_log_lines", 0)
    return [f"{lines} lines in the log"] if lines > 300 else []


@attack("join_flood", f"{CALLS_PER_SECOND} Joins a second of one worker's credential, each of a new process", credential="worker",
        check=few_lines)
def join_flood(target):
    import secrets

    from client.messages import pb
    from client.session import Caller
    caller = Caller(target.grpc, target.ca, target.tokens["mallory-7"])

    def join(_):
        identity = pb.WorkerIdentity(name="mallory-7", incarnation=secrets.randbits(64))
        caller.call(caller.aggregator.Join, pb.JoinRequest(worker=identity, version=target.version,
                                                           data_fingerprint=target.fingerprint))
    return flood(target, 8, join)


@attack("heartbeat_flood", f"{CALLS_PER_SECOND} Heartbeats a second of one worker's credential", credential="worker", check=few_lines)
def heartbeat_flood(target):
    from client.messages import pb
    from client.session import Caller
    caller = Caller(target.grpc, target.ca, target.tokens["mallory-6"])
    identity = pb.WorkerIdentity(name="mallory-6", incarnation=1)
    caller.call(caller.aggregator.Join, pb.JoinRequest(worker=identity, version=target.version,
                                                       data_fingerprint=target.fingerprint))

    def beat(number):
        caller.call(caller.aggregator.Heartbeat, pb.HeartbeatRequest(worker=identity, sequence=number + 1))
    return flood(target, 8, beat)
