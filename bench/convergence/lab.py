"""Runs of the program `convergence`, each once. A finished run is a line of results/*.jsonl with its settings and its curve. So a study can
continue on any machine, and its tables use all finished runs."""
import concurrent.futures
import csv
import dataclasses
import functools
import hashlib
import json
import pathlib
import shutil
import statistics
import subprocess
import threading
import time

STEPS = 300
TOKENS = 2048  # of all workers, a step
SEQUENCE = 128
SEEDS = (1, 2, 3)
LONG_TEXT = 2  # index of the text of text.py, of which no run reads a sample twice

# 0.31 M parameters; every matrix consists of whole blocks of 64 x 64.
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": 256, "hidden_size": 128,
    "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "max_position_embeddings": SEQUENCE, "tie_word_embeddings": True,
}
MODELS = {
    "0.3M": MODEL,
    "1M": MODEL | {"hidden_size": 192, "intermediate_size": 512, "num_attention_heads": 6, "num_key_value_heads": 6},
    "3M": MODEL | {"hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 4},
}


@dataclasses.dataclass(frozen=True)
class Run:
    """One run. Fields that are None have the program's defaults; `deltas` are that method's settings, as pairs sorted by name."""
    method: str = "deltas"  # or signs, adamw, muon, sgd
    lr: float = 4e-3
    seed: int = 1
    steps: int = STEPS  # inner steps
    warmup: int = 30
    floor: float | None = None  # the last rate, as a share of the highest; None: a tenth
    workers: int = 8
    tokens: int = TOKENS  # of all workers, a step
    model: str = "0.3M"
    text: int = 0  # index into the lab's texts
    beta: float | None = None   # of signs, of SGD's momentum, of Muon's buffer
    beta1: float | None = None  # of AdamW
    beta2: float | None = None
    k: int | None = None        # of signs
    attack: str | None = None   # of the last worker of signs
    deltas: tuple = ()

    def seeds(self):
        return [dataclasses.replace(self, seed=seed) for seed in SEEDS]

    def value(self, name):
        """The value of a field or, with deltas, of one of their settings; None if it is not set."""
        return getattr(self, name, None) if self._is_field(name) else dict(self.deltas).get(name)

    def having(self, **changes):
        """The same run with other fields or, with deltas, other settings; None removes a setting."""
        fields = {name: value for name, value in changes.items() if self._is_field(name)}
        settings = dict(self.deltas) | {name: value for name, value in changes.items() if name not in fields}
        fields["deltas"] = tuple(sorted((name, value) for name, value in settings.items() if value is not None))
        return dataclasses.replace(self, **fields)

    def _is_field(self, name):
        return self.method != "deltas" or name in ("method", "lr", "seed", "steps", "warmup", "workers", "tokens", "model", "text", "floor")

    def config(self):
        config = {
            "name": "study", "method": "signs", "seed": self.seed, "rounds": self.steps, "peak_learning_rate": self.lr, "warmup_rounds": self.warmup,
            "sequence_length": SEQUENCE, "samples_per_worker": self.tokens // SEQUENCE // self.workers, "held_out_fraction": 0.05,
            "evaluation_interval_rounds": 30 if self.steps <= 600 else self.steps // 20, "evaluation_samples": 1024 if self.text == LONG_TEXT else 128,
            "start_workers": self.workers, "overlap": 0,
        }
        lowest = None if self.floor is None else self.floor * self.lr
        return config | {name: value for name, value in (("beta", self.beta), ("kept_per_block", self.k), ("min_learning_rate", lowest)) if value is not None}

    def flags(self):
        flags = ["--method", "distro" if self.method == "signs" else self.method, "--workers", str(self.workers)]
        if self.beta1 is not None:
            flags += ["--adam_beta1", f"{self.beta1:g}", "--adam_beta2", f"{self.beta2:g}"]
        if self.attack is not None:
            flags += ["--attack", self.attack]
        return flags + (["--deltas", json.dumps(dict(self.deltas))] if self.deltas else [])


def parameters(config):
    """Number of parameters of a Llama with tied embedding and head."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    return config["vocab_size"] * hidden + layers * (4 * hidden ** 2 + 3 * hidden * config["intermediate_size"] + 2 * hidden) + hidden


def make_model(distroctl, config, out):
    """The checkpoint folder with random weights of a configuration, made once in the folder `out`."""
    model = out / "model"
    if not model.exists():
        out.mkdir(parents=True, exist_ok=True)
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
    """The requested run has not been measured yet."""


def described(run, text):
    """The stored form of a run: its fields, without those that have the program's defaults, and the name of its text."""
    fields = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    fields |= {"text": text, "deltas": dict(run.deltas) or None}
    return {name: value for name, value in fields.items() if value is not None}


@functools.cache
def key(run, text):
    return json.dumps(described(run, text), sort_keys=True)


class Lab:
    """Executes up to `jobs` runs at a time, from any thread, with scratch files in `out`. With 0 it executes none; missing runs are left out."""

    def __init__(self, build, texts, out, results, jobs):
        self.program, self.distroctl = build / "bin/convergence", build / "bin/distroctl"
        self.texts, self.out, self.results, self.jobs = texts, pathlib.Path(out), pathlib.Path(results), jobs
        self.names = [f"{text.stem}-{hashlib.sha256(text.read_bytes()).hexdigest()[:8]}" for text in texts]
        self.seconds = []  # of the runs of this process
        self.lock = threading.Lock()
        self.pool = concurrent.futures.ThreadPoolExecutor(max(1, jobs))
        self.asked = {}  # futures by key, of active and waiting runs
        self.lines = {}
        for file in sorted(self.results.glob("*.jsonl")):
            for line in file.read_text().splitlines():
                one = json.loads(line)
                self.lines[json.dumps(one["run"], sort_keys=True)] = one

    def known(self, runs):
        """{run: its last held-out loss}, for finished runs."""
        found = {run: self._line(run) for run in runs}
        return {run: line["curve"][-1][2] for run, line in found.items() if line}

    def curves(self, runs):
        """The curve of each run: rows of numbers by column name. Raises NotRun if no run has one."""
        self.run(runs)
        found = [self._line(run) for run in runs]
        found = [[dict(zip(("round", "tokens", "held_out_loss", "sent_bytes", "received_bytes"), point)) for point in line["curve"]]
                 for line in found if line]
        if not found:
            raise NotRun
        return found

    def losses(self, runs):
        return [curve[-1]["held_out_loss"] for curve in self.curves(runs)]

    def suspected(self, run):
        """{worker: the round after which it was suspected}."""
        self.run([run])
        line = self._line(run)
        if not line:
            raise NotRun
        return {int(worker): round for worker, round in line["suspected"].items()}

    def count(self):
        return len(self.lines)

    def run(self, runs):
        """The runs without a result."""
        if self.jobs == 0:
            return
        with self.lock:
            waited = [self.asked.get(run) or self._ask(run) for run in dict.fromkeys(runs) if not self._line(run)]
        for future in waited:
            future.result()

    def _ask(self, run):
        self.asked[run] = self.pool.submit(self._run, run)
        return self.asked[run]

    def _line(self, run):
        return self.lines.get(key(run, self.names[run.text])) if run.text < len(self.texts) else None

    def _run(self, run):
        if run.text >= len(self.texts):
            raise SystemExit(f"this question needs {run.text + 1} times --text")
        start = time.monotonic()
        with self.lock:
            model = make_model(self.distroctl, MODELS[run.model], self.out / run.model)
        scratch = self.out / hashlib.sha256(repr(run).encode()).hexdigest()[:16]
        config, curve = scratch.with_suffix(".json"), scratch.with_suffix(".csv")
        config.write_text(json.dumps(run.config(), indent=1))
        command = [self.program, "--run", config, "--model", model, "--data", self.texts[run.text], "--csv", curve, *run.flags()]
        result = subprocess.run(command, capture_output=True, text=True, env={"OMP_NUM_THREADS": "1"})
        if result.returncode:
            raise SystemExit(f"{' '.join(map(str, command))}: {result.stderr}")
        points = [[int(p["round"]), int(p["tokens"]), round(p["held_out_loss"], 6), int(p["sent_bytes"]), int(p["received_bytes"])]
                  for p in read_curve(curve)]
        suspected = [line.split() for line in result.stdout.splitlines() if line.startswith("suspected:")]
        line = {"run": described(run, self.names[run.text]), "curve": points, "suspected": {words[2]: int(words[5]) for words in suspected}}
        config.unlink()
        curve.unlink()
        with self.lock:
            self.seconds.append(time.monotonic() - start)
            self._keep(run, line)
            left = len(self.asked) * statistics.mean(self.seconds) / self.jobs
            print(f"{points[-1][2]:.4f}  {json.dumps(line['run'])}  ({len(self.asked)} asked for, {left / 60:.0f} min)", flush=True)

    def _keep(self, run, line):
        self.asked.pop(run, None)
        self.lines[json.dumps(line["run"], sort_keys=True)] = line
        self.results.mkdir(parents=True, exist_ok=True)
        with open(self.results / f"{run.method}.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")
