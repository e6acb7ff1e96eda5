#!/usr/bin/env python3
"""A worker in Python for each address that comes in as a line, one after the other; how it ended goes out as a line of JSON.

    lied_to.py CONFIG.json TEXT
"""
import json
import pathlib
import sys
import tempfile

import distro_train
import torch
from client.safetensors import read_safetensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from llama import Llama  # noqa: E402
from train import Text  # noqa: E402


def train(address, model, text, told):
    """Until the run is done. `told`: receives the run, and the name of the last call."""
    told["at"] = "connect"
    with distro_train.connect(address, insecure=True, name="worker", model=model, fingerprint=text) as run:
        told["run"] = run
        optimizer = distro_train.Optimizer(run)
        for batch in run.batches(text, torch.stack):
            loss = model(batch)
            loss.backward()
            told["at"] = "step"
            optimizer.step(loss)
            told["at"] = "batches"


def parameters(model):
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def saved(run):
    """The run's parameters, by name; tied ones once."""
    with tempfile.TemporaryDirectory() as folder:
        run.save(f"{folder}/saved")
        tensors = read_safetensors(pathlib.Path(folder, "saved", "model.safetensors").read_bytes())
    return {name: torch.from_numpy(values) for name, values in tensors.items() if name in run.named_parameters}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def main():
    config, text_path = sys.argv[1:]
    torch.set_num_threads(1)
    text = Text(text_path, 16)
    for line in sys.stdin:
        model = Llama(json.loads(pathlib.Path(config).read_text()))
        began, told, error = parameters(model), {}, None
        try:
            train(line.strip(), model, text, told)
        except distro_train.Error as raised:
            error = raised
        run = told.get("run")
        print(json.dumps({"error": type(error).__name__, "message": str(error), "raised_by": told["at"],
                          "module_is_the_runs": same(parameters(model), saved(run) if run else began),
                          "state": run and run.summary()["state_hash"]}), flush=True)


if __name__ == "__main__":
    main()
