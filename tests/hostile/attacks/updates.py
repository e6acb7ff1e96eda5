"""A worker's credential that sends updates which are none (gap payloads, K > 8), between whole ones."""
import random
import time

import grpc

from attacks.registry import attack

BROKEN_IN_A_ROW = 2  # the third is quarantine


def all_refused(bed, told):
    faults = [f"{name}: {said}" for name, said in told["outcomes"].items() if said != "INVALID_ARGUMENT malformed"]
    if told["resyncs"]:
        faults.append("the client's replay differs from the run's: it was told to resync")
    return faults + ([] if told["whole_updates"] > 10 else [f"only {told['whole_updates']} whole updates were taken"])


def send_broken(worker, round_number, open_one, waiting, outcomes):
    """Up to two broken payloads of the round's first segment; then a whole update. What was sent of it."""
    blocks, k = worker.replica.segments, open_one.step.kept_per_block
    segment = round_number % len(blocks)
    from attacks.broken_gaps import breakages
    made = dict(breakages(worker.layout, round_number, segment, blocks[segment], k, round_number))
    if not waiting:
        waiting += list(made)
    for name in [waiting.pop(0) for _ in range(min(BROKEN_IN_A_ROW, len(waiting)))]:
        outcome = refusal(lambda: worker.upload(round_number, {segment: made.get(name) or next(iter(made.values()))}))
        if outcome.endswith(("late", "wrong_round")):
            waiting.append(name)
            return
        outcomes[name] = outcome
    from client.session import random_blocks
    worker.upload(round_number, {
        number: worker.payload(round_number, number, random_blocks(random, blocks[number], k), k)
        for number in ((round_number + i) % len(blocks) for i in range(len(blocks)))})


def refusal(action):
    from client.session import reason_of
    try:
        return f"accepted: {action()}"
    except grpc.RpcError as error:
        return f"{error.code().name} {reason_of(error)}".strip()


@attack("broken_gaps", "a worker's updates in gaps, broken in 49 ways, whole ones between them", credential="worker", check=all_refused,
        seconds=30)
def broken_gaps(target):
    from client.messages import pb
    from client.session import Worker
    worker = Worker(target.grpc, target.ca, target.tokens["mallory"], "mallory", target.fingerprint, target.version)
    worker.join()
    waiting, outcomes, whole, begun = [], {}, 0, False
    for round_number, open_one in worker.rounds():
        if not target.goes_on() or (begun and not waiting):
            break
        worker.heartbeat()
        if not any(slot.worker == "mallory" for slot in open_one.slots):
            continue
        try:
            send_broken(worker, round_number, open_one, waiting, outcomes)
            whole, begun = whole + 1, True
        except grpc.RpcError as error:  # the round was over
            outcomes.setdefault("_late", refusal(lambda: (_ for _ in ()).throw(error)))
    outcomes.pop("_late", None)
    worker.leave()
    return {"outcomes": outcomes, "ways": len(outcomes), "whole_updates": whole,
            "resyncs": worker.directives.count(pb.DIRECTIVE_RESYNC)}
