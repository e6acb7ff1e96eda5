"""A worker's credential that sends invalid updates (gap payloads, K > 8) between valid ones."""
import random

import grpc

from attacks.registry import attack

BROKEN_IN_A_ROW = 2  # the third is quarantine
LEAST_WHOLE = 10


def all_refused(bed, told):
    faults = [f"{name}: {said}" for name, said in told["outcomes"].items() if said != "INVALID_ARGUMENT malformed"]
    if told["untried"]:
        faults.append(f"{told['untried']} ways were not tried: the run was too fast")
    if told["resyncs"]:
        faults.append("the client's replay differs from the run's: it was told to resync")
    if told["whole_updates"] < LEAST_WHOLE:
        faults.append(f"only {told['whole_updates']} whole updates were taken")
    return faults


def outcome_of(action):
    """The outcome of an upload: "accepted", or status and reason."""
    from client.session import reason_of
    try:
        return f"accepted: {action()}"
    except grpc.RpcError as error:
        return f"{error.code().name} {reason_of(error)}".strip()


class Breaker:
    """Sends each kind of broken payload once, and whole updates between them."""

    def __init__(self, worker):
        self._worker, self.waiting, self.outcomes, self.whole = worker, None, {}, 0

    def take(self, round_number, k):
        """At most two broken payloads of the round's first segment, then a whole update."""
        blocks = self._worker.replica.segments
        segment = round_number % len(blocks)
        if blocks[segment] > 1:  # a run of one block cannot be split
            self._send_broken(round_number, segment, blocks[segment], k)
        self.whole += outcome_of(lambda: self._worker.upload(round_number, self._update(round_number, k))).startswith("accepted")

    def _send_broken(self, round_number, segment, blocks, k):
        from attacks.broken_gaps import breakages
        made = dict(breakages(self._worker.layout, round_number, segment, blocks, k, round_number))
        if self.waiting is None:
            self.waiting = list(made)
        for name in self.waiting[:BROKEN_IN_A_ROW]:
            outcome = outcome_of(lambda: self._worker.upload(round_number, {segment: made[name]()}))
            if outcome.startswith("FAILED_PRECONDITION"):  # the round was over
                return
            self.waiting.remove(name)
            self.outcomes[name] = outcome

    def _update(self, round_number, k):
        from client.session import random_blocks
        blocks = self._worker.replica.segments
        order = [(round_number + i) % len(blocks) for i in range(len(blocks))]
        return {number: self._worker.payload(round_number, number, random_blocks(random, blocks[number], k), k) for number in order}


def needs_signs():
    from processes import METHOD
    return "" if METHOD == "signs" else "the client makes updates of signs only"


@attack("broken_gaps", "a worker's updates in gaps, broken in 49 ways, whole ones between them", credential="worker", check=all_refused,
        refusable=needs_signs, seconds=25,
        run={"probation_rounds": 0, "samples_per_worker": 64})  # a pace that an interpreter catches up with
def broken_gaps(target):
    from client.messages import pb
    from client.session import Worker
    worker = Worker(target.grpc, target.ca, target.tokens["mallory"], "mallory", target.fingerprint, target.version)
    worker.join()
    breaker = Breaker(worker)
    for round_number, opened in worker.rounds():
        worker.heartbeat()
        if not target.goes_on() or breaker.waiting == []:
            break
        if any(slot.worker == "mallory" for slot in opened.slots):
            breaker.take(round_number, opened.step.kept_per_block)
    worker.leave()
    return {"outcomes": breaker.outcomes, "untried": len(breaker.waiting or ()), "whole_updates": breaker.whole,
            "resyncs": worker.directives.count(pb.DIRECTIVE_RESYNC)}
