"""The checks after an attack; failures are returned as sentences."""
from processes import until

MEMORY_MB, CORES, THREADS, SILENCE_SECONDS = 64, 0.1, 64, 5
LEAST_ROUNDS_PER_SECOND = 1  # a busy machine has few rounds, too: compare with the row without an attack


def cores_beyond_honest(figures, calm):
    """Processor time of the second half that honest rounds do not explain, in cores."""
    a_round = calm["cores"] / calm["rounds_per_second"] if calm["rounds_per_second"] else 0
    cores, rounds_per_second = figures["second_half"]
    return max(0.0, cores - a_round * rounds_per_second)


def of_answers(figures):
    """The process is alive and answers in time."""
    if not figures["alive"]:
        return ["the aggregator died"]
    if figures["healthz_late"] < 2:  # one may be the machine's: others compute on it
        return []
    slowest = figures["healthz_seconds"]
    return ["/healthz did not answer" if slowest is None else f"/healthz took {slowest} s"]


def of_figures(attack, figures, calm):
    faults = of_answers(figures)
    growth = figures["memory_peak_mb"] - figures["memory_before_mb"]
    figures["cores_beyond_honest"] = round(cores_beyond_honest(figures, calm), 2)
    if not attack.credential:
        if growth > MEMORY_MB:
            faults.append(f"{growth} MB of memory")
        if figures["threads"] - figures["threads_before"] > THREADS:
            faults.append(f"{figures['threads'] - figures['threads_before']} threads more")
        if figures["cores_beyond_honest"] > CORES:
            faults.append(f"{figures['cores_beyond_honest']} cores")
    if attack.credential != "disk":
        if figures["rounds_per_second"] < LEAST_ROUNDS_PER_SECOND:
            faults.append(f"{figures['rounds_per_second']} rounds a second")
        if figures["longest_silence_seconds"] > SILENCE_SECONDS:
            faults.append(f"no round for {figures['longest_silence_seconds']} s")
    return faults


def of_run(bed, attack, told):
    """The run after an attack: honest workers are alive, rounds continue, and the log agrees with their parameters."""
    faults = [f"the attacker failed: {said}" for key, said in told.items() if key.startswith("attacker_")]
    for worker in bed.workers:
        if worker.child.poll() is not None:
            faults.append(f"{worker.name} ended with {worker.child.returncode}")
    if bed.aggregator.child.poll() is not None:
        return faults + ["the aggregator ended"]
    try:
        bed.await_round(bed.committed() + 3, 10)
    except AssertionError:
        faults.append("no round within 10 s afterwards")
    if attack.check and not faults:
        faults += attack.check(bed, told)
    if attack.log_stays:
        faults += of_log(bed)
    return faults


def of_log(bed):
    equal, said = bed.replay()
    return [] if equal else [f"log replay: {said.strip().splitlines()[-1]}"]


def of_end(bed):
    """Honest workers that finish a run, with equal hashes."""
    faults, hashes = [], set()
    for worker in bed.workers:
        try:
            until(lambda: worker.child.poll() is not None, "ends", 20)
        except AssertionError:
            faults.append(f"{worker.name} has not finished")
            continue
        if worker.child.returncode != 0:
            faults.append(f"{worker.name} ended with {worker.child.returncode}")
        elif worker.has_summary():
            hashes.add(worker.summary()["state_hash"])
    if len(hashes) > 1:
        faults.append(f"state hashes differ: {sorted(hashes)}")
    if bed.aggregator.child.poll() not in (None, 0):
        faults.append(f"the aggregator ended with {bed.aggregator.child.returncode}")
    return faults + of_log(bed)
