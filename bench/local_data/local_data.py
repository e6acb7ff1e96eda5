#!/usr/bin/env python3
"""Three workers with texts of different kinds that train one model together, beside each alone on the same number of its own
tokens: Perl's manual (Debian's perl-doc), CMake's (cmake-data) and generated arithmetic. Held-out loss of each on its own text and
on a public one that has a part of every kind.

    bench/local_data/local_data.py --programs build/release/bin
"""
import argparse
import os
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
os.environ["DISTRO_TEST_METHOD"] = "deltas"

from processes import Workspace, programs_in  # noqa: E402

MODEL = {"hidden_size": 128, "intermediate_size": 344, "max_position_embeddings": 64, "num_attention_heads": 4,
         "num_hidden_layers": 2, "num_key_value_heads": 4}
RUN = {"sequence_length": 64, "samples_per_worker": 8, "local_steps": 5, "kept_per_block": 32, "peak_learning_rate": 0.008, "segment_blocks": 64,
       "evaluation_samples": 256, "probation_rounds": 0, "data": "local"}
PUBLIC_BYTES = 20_000  # of each kind
TOKENS_OF_A_ROUND = RUN["sequence_length"] * RUN["samples_per_worker"] * RUN["local_steps"]


def manual(pattern, package, own_bytes):
    files = sorted(pathlib.Path("/usr/share").glob(pattern))
    text = "".join(path.read_text(errors="ignore") for path in files)
    if len(text) < own_bytes + PUBLIC_BYTES:
        sys.exit(f"/usr/share/{pattern}: there is not enough text: apt-get install {package}")
    return text


def arithmetic(own_bytes):
    numbers = random.Random(1)
    lines = []
    while len(lines) * 8 < own_bytes + PUBLIC_BYTES:
        a, b = numbers.randrange(100), numbers.randrange(100)
        lines.append(f"{a}+{b}={a + b}\n")
    return "".join(lines)


def texts(own_bytes):
    """The workers' own texts, and the public one."""
    kinds = {"perl": manual("perl/*/pod/*.pod", "perl-doc", own_bytes), "cmake": manual("cmake-*/Help/**/*.rst", "cmake-data", own_bytes),
             "arithmetic": arithmetic(own_bytes)}
    own = {name: text.encode()[:own_bytes] for name, text in kinds.items()}
    public = b"".join(text.encode()[own_bytes:own_bytes + PUBLIC_BYTES] for text in kinds.values())
    return {name: text.decode(errors="ignore") for name, text in own.items()}, public.decode(errors="ignore")


def run(programs, own, public, names, rounds, seed, flags, **overrides):
    """Each worker's summary."""
    space = Workspace(programs)
    try:
        space.model = MODEL
        (space.folder / "public.txt").write_text(public)
        aggregator = space.create_run(rounds=rounds, warmup_rounds=rounds // 10, start_workers=len(names), min_workers=len(names), seed=seed,
                                      **RUN, **overrides)
        workers = []
        for name in names:
            space.text = space.folder / f"{name}.txt"
            space.text.write_text(own[name])
            workers.append(space.start_worker(name, aggregator.grpc, "--public_data", space.folder / "public.txt", *flags))
        for worker in workers:
            assert worker.exit_code(rounds * 60) == 0, worker.log()
        return {worker.name: worker.summary() for worker in workers}
    finally:
        space.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of distro-aggregator, distro-worker and distroctl")
    parser.add_argument("--own_bytes", type=int, default=60_000, help="bytes of each worker's text")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    programs, (own, public) = programs_in(given.programs), texts(given.own_bytes)
    print(f"{given.own_bytes} bytes of each worker, {given.rounds} rounds, {given.rounds * TOKENS_OF_A_ROUND} tokens of each worker, seed {given.seed}", flush=True)
    print("| held-out loss, nats a byte | own: " + " | own: ".join(own) + " | public |")
    print("|---|" + "---|" * (len(own) + 1))

    def show(what, summaries):
        losses = [summaries[name]["last_own_evaluation_loss"] for name in own]
        shared = [summaries[name]["last_evaluation_loss"] for name in own]
        cells = [f"{loss:.3f}" for loss in losses] + [" / ".join(dict.fromkeys(f"{loss:.3f}" for loss in shared))]
        print(f"| {what} | " + " | ".join(cells) + " |", flush=True)

    def go(names, flags=(), **overrides):
        return run(programs, own, public, names, given.rounds, given.seed, flags, **overrides)

    alone = {}
    for name in own:
        alone.update(go([name]))
    show("each alone", alone)
    show("together", go(list(own)))
    show("together, nothing kept (`--stateless`)", go(list(own), ["--stateless"]))


if __name__ == "__main__":
    main()
