#!/usr/bin/env python3
"""Which settings fine-tune best in a run: a whole model and LoRA adapters, beside transformers.Trainer with AdamW. Every model answers the
same questions, which lm-eval scores, before and after. Continues where it stopped: a finished run is a line of results.jsonl.

    .deps/transformers/bin/python3 bench/fine_tuning/study.py run --programs build/dev/bin --package build/dev/python --out build/fine_tuning
    .deps/transformers/bin/python3 bench/fine_tuning/study.py page        # writes the tables into docs/fine_tuning.md and README.md beside this

A run is `distro-train local` with examples/python/finetune.py; 120 steps of 32 conversations, which the workers share. The text is that of
Debian's perl-doc.
"""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "bench")]
import scores  # noqa: E402
import tables  # noqa: E402
from runs import (  # noqa: E402
    ALONE, LENGTH, MAIN, RESULTS, SEEDS, best, finished_runs, lines_of, others, untried)

SCORERS = 2  # processes in which lm-eval runs


class Study:
    def __init__(self, args):
        self.args = args
        self.device = args.device
        self.folder = args.out.resolve()
        self.training = threading.Semaphore(args.jobs)
        self.lock = threading.Lock()  # of the file of results, and of the folders of `init`
        self.scorers = concurrent.futures.ProcessPoolExecutor(SCORERS, multiprocessing.get_context("spawn"), scores.begin,
                                                             (self.folder, self.device, args.threads))
        self.finished = finished_runs()
        package = [str(args.package.resolve())] if args.package else []
        self.environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(args.threads), "TOKENIZERS_PARALLELISM": "false",
                            "PYTHONPATH": os.pathsep.join([*package, *filter(None, [os.environ.get("PYTHONPATH")])])}

    def prepare(self):
        if not (self.folder / "base" / "model.safetensors").exists():
            self.python("pretraining", HERE / "base.py", "pretrain", self.folder, "--device", self.device, "--steps", self.args.base_steps)
        self.base = hashlib.sha256((self.folder / "base" / "model.safetensors").read_bytes()).hexdigest()[:16]
        if any(line["base"] != self.base for line in lines_of(RESULTS)):
            sys.exit(f"{RESULTS} is of another base model than {self.folder / 'base'}: move one of them away")
        if not RESULTS.exists():
            self.keep(None, {}, self.score_of(self.folder / "base"))

    def score_of(self, folder):
        return self.scorers.submit(scores.of, folder).result()

    def keep(self, run, bytes_sent, score):
        line = {"run": run and dataclasses.asdict(run), **score, **bytes_sent, "base": self.base}
        with self.lock, open(RESULTS, "a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{run.title() if run else 'before'}: {score['accuracy']:.3f}, loss {score['loss']:.3f}", flush=True)
        return line

    def python(self, name, *command):
        """What the program said."""
        log = self.folder / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "w") as file:
            code = subprocess.call([sys.executable, "-B", *map(str, command)], stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env=self.environment, cwd=self.folder)
        if code != 0:
            raise RuntimeError(f"{name} ended with {code}: {log}\n{log.read_text()[-2000:]}")
        return log.read_text()

    def run_all(self, runs):
        missing = [run for run in dict.fromkeys(runs) if run not in self.finished]
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs + SCORERS) as pool:
            try:
                for done in concurrent.futures.as_completed([pool.submit(self.run, run) for run in missing]):
                    done.result()
            finally:
                pool.shutdown(cancel_futures=True)  # after ^C or a failure no further run begins

    def run(self, run):
        out = self.folder / ("trained-" + "-".join(map(str, dataclasses.astuple(run))))
        flags = ["--lora", run.lora, "--device", self.device]
        with self.training:
            said = self.alone(run, out, flags) if run.inner is None else self.together(run, out, flags)
        table = re.search(r"w1 +\S+ +\S+ +\S+ +(\S+) MB +(\S+) MB", said)
        transferred = {"sent_mb": float(table[1]), "received_mb": float(table[2])} if table else {}
        self.finished[run] = self.keep(run, transferred, self.score_of(out))

    def alone(self, run, out, flags):
        return self.python(out.name, HERE / "base.py", "alone", self.folder, "--out", out, "--rate", run.rate, "--seed", run.seed, *flags)

    def together(self, run, out, flags):
        example = ROOT / "examples" / "python" / "finetune.py"
        model = ["--model", self.folder / "base", "--dtype", run.dtype]
        initial = self.folder / f"initial-{run.lora}-{run.dtype}-{run.seed}"
        with self.lock:
            if not initial.exists():
                self.python(initial.name, example, "init", *model, "--lora", run.lora, "--out", initial)
        config = self.folder / f"{out.name}.json"
        config.write_text(json.dumps(run.config()))
        return self.python(out.name, "-m", "distro_train", "local", "--workers", run.workers, "--run", config, "--model", initial,
                           "--aggregator_program", self.args.programs.resolve() / "distro-aggregator", example, "train", *model,
                           "--data", self.folder / "chat.jsonl", "--length", LENGTH, "--out", out, *flags)

    def tune(self, settings):
        """Moves to a better rate until both neighbours are worse."""
        while missing := [run for setting in settings for run in untried(self.finished, setting)]:
            self.run_all(missing)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run", help="run what is missing")
    command.add_argument("--programs", type=pathlib.Path, required=True, help="folder of distro-aggregator")
    command.add_argument("--package", type=pathlib.Path, help="folder of distro_train, if it is not installed")
    command.add_argument("--out", type=pathlib.Path, required=True, help="folder for models and scratch files")
    command.add_argument("--device", default="cpu", help="cpu or cuda")
    command.add_argument("--jobs", type=int, default=1, help="runs at a time")
    command.add_argument("--threads", type=int, default=1, help="of each process of a run")
    command.add_argument("--base_steps", type=int, default=1200, help="of the base model")
    commands.add_parser("page", help="write the tables into their pages")
    args = parser.parse_args()
    if args.command == "page":
        tables.write([ROOT / "docs" / "fine_tuning.md", ROOT / "bench" / "fine_tuning" / "README.md"])
        return
    study = Study(args)
    study.prepare()
    study.tune(ALONE + MAIN)
    study.run_all(others(study.finished))
    study.run_all([dataclasses.replace(best(study.finished, setting), seed=seed) for seed in SEEDS for setting in ALONE + MAIN])
    study.scorers.shutdown()


if __name__ == "__main__":
    main()
