"""What is run: the settings, and the results of those that have finished."""
import dataclasses
import json
import pathlib

RESULTS = pathlib.Path(__file__).resolve().parent / "results.jsonl"
STEPS = 120
CONVERSATIONS = 32  # of a step, over all workers
LENGTH = 256  # tokens, of a text of the base model and of a conversation
SEEDS = (1, 2, 3)
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
FIRST_RATES = {0: 1e-3, 16: 3e-3}  # of a whole model and of adapters


@dataclasses.dataclass(frozen=True)
class Run:
    """One fine-tuning. `lora`: the rank of the adapters, 0 for the whole model. `inner`: of deltas; None: Trainer with AdamW alone."""
    lora: int
    inner: str | None = "muon"
    rate: float = 0.0
    local_steps: int = 1
    kept: int = 32
    workers: int = 4
    dtype: str = "float32"
    seed: int = 1

    def config(self):
        """run.json"""
        return {"name": "fine-tuning", "workers": "python", "seed": self.seed, "rounds": STEPS // self.local_steps, "data_fingerprint": "any",
                "samples_per_worker": CONVERSATIONS // self.workers, "local_steps": self.local_steps, "kept_per_block": self.kept,
                "inner_optimizer": self.inner, "peak_learning_rate": self.rate, "held_out_fraction": 0}

    def title(self):
        return ", ".join(f"{name} {value}" for name, value in dataclasses.asdict(self).items())


ALONE = [Run(lora, inner=None) for lora in FIRST_RATES]
MAIN = [Run(lora, inner, local_steps=h) for lora in FIRST_RATES for inner in ("muon", "adamw") for h in (1, 5)]
#: What differs from the main settings.
OTHERS = [{"local_steps": 15}, {"local_steps": 30}, {"kept": 8}, {"kept": 128}, {"workers": 2}, {"workers": 8}, {"lora": 4}, {"lora": 64},
          {"dtype": "bfloat16"}]


def best(finished, setting):
    """The run at the rate with the lowest loss, of the first seed; None: there is none yet."""
    runs = [run for run in finished if dataclasses.replace(run, rate=0.0) == setting]
    return min(runs, key=lambda run: finished[run]["loss"], default=None)


def untried(finished, setting):
    """The next rates to run: the first one and its neighbours, or the missing neighbours of the best."""
    found = best(finished, setting)
    middle = RATES.index(found.rate if found else FIRST_RATES[16 if setting.lora else 0])
    runs = [dataclasses.replace(setting, rate=rate) for rate in RATES[max(0, middle - 1):middle + 2]]
    return [run for run in runs if run not in finished]


def others(finished):
    """What OTHERS changes, one key at a time, of the main settings with H = 5 and the better inner optimizer, at their rate."""
    found = []
    for lora in reversed(FIRST_RATES):
        main = [best(finished, setting) for setting in MAIN if setting.lora == lora and setting.local_steps == 5]
        if all(main):
            middle = min(main, key=lambda run: finished[run]["loss"])
            found += [dataclasses.replace(middle, **change) for change in OTHERS if lora or "lora" not in change]
    return found


def finished_runs():
    return {Run(**line["run"]): line for line in lines_of(RESULTS) if line["run"]}


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
