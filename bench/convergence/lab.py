"""Runs of the program `convergence`, each once: what has been run is read back, so a study goes on where it stopped."""
import concurrent.futures
import csv
import dataclasses
import json
import pathlib
import shutil
import statistics
import subprocess
import time

ROUNDS = 300
TOKENS_PER_ROUND = 2048
SEQUENCE = 128
SEEDS = (1, 2, 3)

# 0.31 M parameters; every matrix is whole blocks of 64 x 64.
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": 256, "hidden_size": 128,
    "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "max_position_embeddings": SEQUENCE, "tie_word_embeddings": True,
}


@dataclasses.dataclass(frozen=True)
class Run:
    """One run; every field is part of its name. Fields of None are left to the program."""
    method: str = "distro"
    workers: int = 8
    lr: float = 2e-3
    beta: float = 0.95
    k: int = 16
    seed: int = 1
    overlap: int = 0
    warmup: int = 30
    rounds: int = ROUNDS
    beta2: float | None = None          # of AdamW
    kept_votes: int | None = None       # download = top
    miss: str | None = None
    first_round: str | None = None
    feedback_of_missed: bool = False
    one_vote: bool = False

    def name(self):
        parts = [f"{f.name}={getattr(self, f.name):g}" if isinstance(getattr(self, f.name), (int, float)) else
                 f"{f.name}={getattr(self, f.name)}" for f in dataclasses.fields(self)
                 if getattr(self, f.name) != f.default or f.name in ("method", "seed")]
        return "_".join(parts).replace(",", "+")

    def seeds(self):
        return [dataclasses.replace(self, seed=seed) for seed in SEEDS]

    def config(self):
        config = {
            "name": "study", "seed": self.seed, "rounds": self.rounds, "peak_learning_rate": self.lr, "warmup_rounds": self.warmup,
            "beta": self.beta, "kept_per_block": self.k, "sequence_length": SEQUENCE,
            "samples_per_worker": TOKENS_PER_ROUND // SEQUENCE // self.workers, "held_out_fraction": 0.05,
            "evaluation_interval_rounds": 30, "evaluation_samples": 128, "start_workers": self.workers, "overlap": self.overlap,
        }
        if self.kept_votes is not None:
            config |= {"download": "DOWNLOAD_MODE_TOP", "kept_votes_per_block": self.kept_votes}
        return config

    def flags(self):
        flags = ["--method", self.method, "--workers", str(self.workers)]
        if self.beta2 is not None:
            flags += ["--adam_beta1", f"{self.beta:g}", "--adam_beta2", f"{self.beta2:g}"]
        if self.miss is not None:
            flags += ["--miss", self.miss]
        if self.first_round is not None:
            flags += ["--first_round", self.first_round]
        return flags + ["--feedback_of_missed"] * self.feedback_of_missed + ["--one_vote"] * self.one_vote


def make_model(distroctl, config, out):
    """The checkpoint folder with random weights of a configuration, made once in the folder `out`."""
    model = out / "model"
    if not model.exists():
        file, scratch = out / "config.json", out / "model.unfinished"
        file.write_text(json.dumps(config, indent=1))
        shutil.rmtree(scratch, ignore_errors=True)
        subprocess.run([distroctl, "init-model", "--config", file, "--seed", "1", "--out", scratch], check=True, stdout=subprocess.DEVNULL)
        scratch.rename(model)
    return model


def read_curve(path):
    """Rows of numbers by column name."""
    with open(path, newline="") as file:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


class NotRun(Exception):
    """Something was asked for that no run has measured yet."""


class Lab:
    """Runs into `out`, `jobs` at a time; with 0 nothing is run, and what is missing is left out."""

    def __init__(self, program, distroctl, text, out, jobs):
        self.program, self.text, self.out, self.jobs = program, text, pathlib.Path(out), jobs
        self.seconds = []  # of the runs of this process
        self.out.mkdir(parents=True, exist_ok=True)
        if jobs:
            self.model = make_model(distroctl, MODEL, self.out)

    def known(self, runs):
        """{run: its last held-out loss} of those that were run."""
        return {run: read_curve(self._csv(run))[-1]["held_out_loss"] for run in runs if self._csv(run).exists()}

    def curves(self, runs):
        """Of each run, its curve: rows of numbers by column name. Raises NotRun when there is none of any."""
        self.run(runs)
        found = [read_curve(self._csv(run)) for run in runs if self._csv(run).exists()]
        if not found:
            raise NotRun
        return found

    def losses(self, runs):
        return [curve[-1]["held_out_loss"] for curve in self.curves(runs)]

    def count(self):
        """Runs of ROUNDS rounds that were made; another length is in a run's name."""
        return sum("_rounds=" not in file.name for file in self.out.glob("method=*.csv"))

    def run(self, runs):
        """Those that were not run before."""
        if self.jobs == 0:
            return
        missing = [run for run in dict.fromkeys(runs) if not self._csv(run).exists()]
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            done = [pool.submit(self._run, run) for run in missing]
            for count, future in enumerate(concurrent.futures.as_completed(done), 1):
                run, loss = future.result()
                left = (len(missing) - count) * statistics.mean(self.seconds) / self.jobs
                print(f"{count}/{len(missing)}  {loss:.4f}  {run.name()}  ({left / 60:.0f} min left of these)", flush=True)

    def _csv(self, run):
        return self.out / f"{run.name()}.csv"

    def _run(self, run):
        start = time.monotonic()
        config = self.out / f"{run.name()}.json"
        config.write_text(json.dumps(run.config(), indent=1))
        command = [self.program, "--run", config, "--model", self.model, "--data", self.text, "--csv", self._csv(run), *run.flags()]
        result = subprocess.run(command, capture_output=True, text=True, env={"OMP_NUM_THREADS": "1"})
        if result.returncode:
            raise SystemExit(f"{' '.join(map(str, command))}: {result.stderr}")
        self.seconds.append(time.monotonic() - start)
        return run, read_curve(self._csv(run))[-1]["held_out_loss"]
