#!/usr/bin/env python3
"""One run with a worker on each of the devices, over loopback: are their parameters the same bits after every round?

    replicas.py --bin FOLDER --method deltas --devices cuda,cpu [--rounds 40]

With each update a worker reports the hash of its parameters. At the end the log of the run is replayed on the CPU, and every
hash that was reported is compared with the replay's. Prints a line of JSON, with the seconds of each phase of the first worker;
status 1 where a hash is missing or differs, or where held-out losses are further apart than the arithmetic of the devices.
"""
import argparse
import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import processes  # noqa: E402

MODEL = json.loads((ROOT / "examples/demo/config.json").read_text())
RUN = {"name": "replicas", "seed": 1, "sequence_length": 128, "samples_per_worker": 4, "evaluation_samples": 16}
METHODS = {"deltas": {"peak_learning_rate": 0.008, "local_steps": 2}, "signs": {"peak_learning_rate": 0.001, "beta": 0.95, "kept_per_block": 64}}
SECONDS = 100  # of training
LOSSES = 0.02  # between the held-out losses that devices compute of the same parameters


def train(space, method, devices, rounds):
    """The workers, once the run is done."""
    run = space.folder / "run.json"
    run.write_text(json.dumps({**RUN, **METHODS[method], "method": method, "rounds": rounds, "start_workers": len(devices),
                               "min_workers": len(devices)}))
    space.model = MODEL
    aggregator = space.start_aggregator("--run", run, "--model", space.init_model())
    workers = [space.start_worker(f"{device}-{i}", aggregator.grpc, "--data_format", "text", "--device", device)
               for i, device in enumerate(devices)]
    processes.until(lambda: all_ended(workers), "the run is done", SECONDS)
    aggregator.signal(15)  # the log is replayed below
    aggregator.exit_code()
    return workers


def all_ended(workers):
    """Whether all have ended, each as it should."""
    codes = [worker.child.poll() for worker in workers]
    for worker, code in zip(workers, codes):
        if code:
            raise AssertionError(f"{worker.name} ended with {code}: {worker.log()[-1500:]}")
    return None not in codes


def compare(space, workers, rounds):
    """The hashes of the run, and what is wrong with them."""
    replay = json.loads(space.distroctl("log", "replay", "--data_dir", space.data_dir, "--output", "json"))
    hashes = {worker.name: worker.summary()["state_hash"] for worker in workers} | {"replay": replay["state_hash"]}
    wrong = list(replay["differences"])
    if replay["reported"] != rounds * len(workers):
        wrong.append(f"{replay['reported']} hashes were reported, not {len(workers)} in each of {rounds} rounds")
    if len(set(hashes.values())) != 1:
        wrong.append(f"the last hashes differ: {hashes}")
    losses = [worker.summary()["last_evaluation_loss"] for worker in workers]
    if max(losses) > (1 + LOSSES) * min(losses):
        wrong.append(f"the held-out losses differ: {losses}")
    return {"reported": replay["reported"], "different": replay["different"], "hashes": hashes, "held_out_losses": losses}, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder with distro-aggregator, distro-worker and distroctl")
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--devices", required=True, help="a worker for each, such as cuda,cpu")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    devices = options.devices.split(",")
    space = processes.Workspace(processes.programs_in(options.bin))
    try:
        begin = time.monotonic()
        workers = train(space, options.method, devices, options.rounds)
        seconds = time.monotonic() - begin
        row, wrong = compare(space, workers, options.rounds)
        first = workers[0].summary()
    except AssertionError as error:
        print(f"replicas: {error}", file=sys.stderr)
        return 1
    finally:
        space.close()
    print(json.dumps({"name": options.method, "devices": devices, "parameters": first["parameters"], "rounds": options.rounds,
                      "seconds": round(seconds, 1), "phases": first["phase_seconds"], **row}), flush=True)
    for complaint in wrong:
        print(f"replicas: {complaint}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
