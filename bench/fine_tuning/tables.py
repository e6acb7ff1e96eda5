"""The tables of docs/fine_tuning.md and of README.md beside this file, of the finished runs."""
import dataclasses
import datetime
import statistics

import page
import runs

NAMES = {None: "Trainer alone, AdamW", "muon": "deltas", "adamw": "deltas of AdamW"}


def scores(finished, best):
    """Cells: mean and range over the seeds of a run, and the bytes of the first."""
    seeds = [finished[run] for run in finished if dataclasses.replace(run, seed=1) == best]
    right = [100 * end["accuracy"] for end in seeds]
    spread = f" ({min(right):.1f} to {max(right):.1f})" if len(seeds) > 1 else ""
    traffic = [f"{finished[best][key] * 1e3 / runs.STEPS:.3g} kB" if best.inner else "" for key in ("sent_mb", "received_mb")]
    return [f"{statistics.mean(right):.1f} %{spread}", f"{statistics.mean(end['loss'] for end in seeds):.3f}", *traffic]


def main_table(finished, lora):
    rows = []
    for setting in runs.ALONE + runs.MAIN:
        best = runs.best(finished, setting)
        if setting.lora == lora and best:
            title = NAMES[setting.inner] + (f", H = {setting.local_steps}" if setting.inner else "")
            tried = sorted({run.rate for run in finished if dataclasses.replace(run, rate=best.rate) == best})
            rows.append([title, ", ".join(f"{rate:g}" for rate in tried), f"{best.rate:g}", *scores(finished, best)])
    trained = "LoRA, rank 16" if lora else "whole model"
    return page.table([trained, "rates tried", "rate", "answered right", "loss", "sent", "received"], rows)


def others_table(finished):
    rows = []
    for run in runs.others(finished):
        default = runs.Run(run.lora, run.inner)
        changed = [name for name in TITLES if getattr(run, name) != getattr(default, name)]
        title = f"LoRA, rank {run.lora}" if run.lora else "whole model"
        title += "".join(f", {TITLES[name].format(getattr(run, name))}" for name in changed)
        rows.append([title, *(scores(finished, run) if run in finished else ["not run yet"])])
    return page.table(["what differs", "answered right", "loss", "sent", "received"], rows)


TITLES = {"local_steps": "H = {}", "kept": "K = {}", "workers": "W = {}", "dtype": "{} in memory"}


def write(pages):
    lines = runs.lines_of(runs.RESULTS)
    finished = runs.finished_runs()
    before = next(line for line in lines if not line["run"])
    devices = " and ".join(sorted({line["device"] for line in lines}))
    page.fill_each(pages, {
        "conditions": f"{datetime.date.today()}, {devices}: {len(finished)} runs. Before: {100 * before['accuracy']:.1f} % right, "
                      f"loss {before['loss']:.3f}.",
        "whole": main_table(finished, 0), "adapters": main_table(finished, 16), "others": others_table(finished)})
