#!/usr/bin/env python3
"""Three workers of different speeds, each alone, all together with a window, and all together without one: tokens a second of
each, counted from the log, and the held-out loss at the end beside that of three workers of one speed with as many tokens and
rounds. The speeds are made by `--hold_back`; a step computes for some milliseconds.

    bench/speeds/speeds.py --programs build/release/bin
"""
import argparse
import datetime
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
os.environ["DISTRO_TEST_METHOD"] = "deltas"

from processes import Workspace, programs_in  # noqa: E402

HOLD_BACK = {"fast": "50ms", "middle": "210ms", "slow": "430ms"}
SAMPLES, LENGTH = 4, 16
WINDOW = {"round_window": "5s", "local_steps": 120}
FIXED = {"local_steps": 12}  # the steps of the slow worker in the window


def tokens_of(header, local_steps):
    """The tokens of a round, by worker."""
    return {member["name"]: member.get("local_steps", local_steps) * SAMPLES * LENGTH
            for member in header["members"] if member["segments"]}


def run(programs, names, rounds, hold_back=None, **config):
    """Tokens per second by worker between the first commit and the last, all tokens, and the held-out loss at the end."""
    space = Workspace(programs)
    try:
        aggregator = space.create_run(rounds=rounds, start_workers=len(names), min_workers=len(names), max_workers=8,
                                      samples_per_worker=SAMPLES, sequence_length=LENGTH, peak_learning_rate=0.008, evaluation_samples=128, **config)
        workers = [space.start_worker(name, aggregator.grpc, "--hold_back", hold_back or HOLD_BACK[name]) for name in names]
        for worker in workers:
            assert worker.exit_code(rounds * 30) == 0, worker.log()
        headers = [json.loads(space.distroctl("log", "show", t, "--data_dir", space.data_dir, "--output", "json"))
                   for t in range(rounds)]
        times = [datetime.datetime.fromisoformat(header["committed_at"].replace("Z", "+00:00")) for header in headers]
        seconds = (times[-1] - times[0]).total_seconds()
        counts = [tokens_of(header, config["local_steps"]) for header in headers]
        rates = {name: sum(count.get(name, 0) for count in counts[1:]) / seconds for name in names}
        return rates, sum(sum(count.values()) for count in counts), workers[0].summary()["last_evaluation_loss"]
    finally:
        space.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of distro-aggregator, distro-worker and distroctl")
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    programs = programs_in(given.programs)
    alone = {}
    for name in HOLD_BACK:
        alone.update(run(programs, [name], given.rounds, **WINDOW)[0])
    together, tokens, loss = run(programs, list(HOLD_BACK), given.rounds, **WINDOW)
    without, *_ = run(programs, list(HOLD_BACK), given.rounds, **FIXED)
    alike = round(tokens / given.rounds / len(HOLD_BACK) / (SAMPLES * LENGTH))  # steps a round
    _, tokens_alike, loss_alike = run(programs, list(HOLD_BACK), given.rounds, hold_back="0s", local_steps=alike)
    print("| tokens a second | " + " | ".join(HOLD_BACK) + " | all | of the sum of each alone |")
    print("|---|" + "---|" * (len(HOLD_BACK) + 2))
    for what, rates in (("each alone, window", alone), ("together, window", together), ("together, no window", without)):
        cells = [f"{rates[name]:.0f}" for name in HOLD_BACK]
        total = sum(rates.values())
        print(f"| {what} | " + " | ".join(cells) + f" | {total:.0f} | {total / sum(alone.values()):.2f} |")
    print(f"held-out loss after {given.rounds} rounds: {loss:.3f} of {tokens} tokens at three speeds; {loss_alike:.3f} of {tokens_alike} tokens "
          f"at one, {alike} steps a round each")


if __name__ == "__main__":
    main()
