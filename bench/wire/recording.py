"""Votes and updates of a small model after 60 rounds of training, made once: realistic data for wire.py,
and the uploads of synthetic workers (aggregator_load/load.py)."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "convergence"))
import lab  # noqa: E402

K = 4
ROUND = 60
# 3.3 M parameters: a segment of 800 blocks, in which the codec's tables weigh as little as in a full one.
MODEL = lab.MODEL | {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4}


def record(build, text, out, workers):
    """(file of the votes, folder of the workers' updates) of the last round; each worker is a thread with a model of its own."""
    votes, updates = out / f"votes-{workers}", out / f"updates-{workers}"
    if votes.exists():
        return votes, updates
    out.mkdir(parents=True, exist_ok=True)
    updates.mkdir(exist_ok=True)
    model = lab.make_model(build / "bin/distroctl", MODEL, out)
    run = out / f"run-{workers}.json"
    run.write_text(json.dumps({
        "name": "wire", "method": "signs", "seed": 1, "rounds": ROUND, "peak_learning_rate": 2e-3, "warmup_rounds": 6, "beta": 0.95, "kept_per_block": K,
        "sequence_length": lab.SEQUENCE, "samples_per_worker": 1, "overlap": 0, "evaluation_samples": 1}))
    subprocess.run([build / "bin/convergence", "--run", run, "--model", model, "--data", text, "--workers", str(workers),
                    "--record_votes", votes, "--record_updates", updates], check=True, stdout=subprocess.DEVNULL)
    return votes, updates
