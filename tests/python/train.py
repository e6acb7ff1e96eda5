"""A worker in Python, as a process like a user's program. Prints one line a step and the readings at its end."""
import argparse
import json
import logging
import pathlib
import sys

import distro_train
import torch
from llama import Llama, freeze
from plain import Plain


class Text:
    """A text as distro-worker reads it: sample i is the length + 1 bytes from i * length on."""

    def __init__(self, path, length):
        self.tokens = torch.frombuffer(bytearray(pathlib.Path(path).read_bytes()), dtype=torch.uint8).long()
        self.length = length
        self.fingerprint = distro_train.fingerprint_of_tokens(str(path))
        self.given = []  # indices, in the order in which they were read

    def __len__(self):
        return (len(self.tokens) - 1) // self.length

    def __getitem__(self, index):
        self.given.append(index)
        return self.tokens[index * self.length:(index + 1) * self.length + 1]


def training_samples(text, config):
    """The rest is held out."""
    return len(text) + int(-len(text) * config["held_out_fraction"] // 1)


def held_out_loss(model, text, config, device):
    """Of the first evaluation_samples held-out samples, as distro-worker has it."""
    first = training_samples(text, config)
    with torch.no_grad():
        samples = torch.stack([text[first + i] for i in range(int(config["evaluation_samples"]))])
        return model(samples.to(device)).item()


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.05)


def main():
    parser = argparse.ArgumentParser()
    for flag in ("text", "summary"):
        parser.add_argument(f"--{flag}", required=True)
    for flag in ("aggregator", "name", "config", "state_dir", "folder", "invite", "ca", "cert", "key", "server_name", "token",
                 "tokenizer", "mirror"):
        parser.add_argument(f"--{flag}")
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--batch_size", type=int)
    parser.add_argument("--sgd", action="store_true")
    parser.add_argument("--dtype", default="float32", help="of the module")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--frozen", action="store_true", help="a Llama of which only a part is trained")
    parser.add_argument("--no_fingerprint", action="store_true")
    parser.add_argument("--no_mirrors", action="store_true")
    parser.add_argument("--schedule", action="store_true", help="halve the rate of --sgd every fifth step")
    parser.add_argument("--mistake", choices=("no_backward", "replaced", "scheduled", "other_base"), help="of a program")
    parser.add_argument("--loader_workers", type=int, default=0, help="processes of a DataLoader that is read after each round")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    torch.set_num_threads(1)
    model = Llama(json.loads(pathlib.Path(args.config).read_text())) if args.config else Plain(seed=len(args.name or ""))
    model = model.to(args.device, getattr(torch, args.dtype))
    if args.frozen:
        freeze(model)
    if args.mistake == "other_base":
        torch.nn.init.ones_(model.frozen.weight)
    text = Text(args.text, args.length)
    exchanged, told, steps = 0, [], []
    with distro_train.connect(args.aggregator, invite=args.invite, ca=args.ca, cert=args.cert, key=args.key,
                              server_name=args.server_name, token=args.token, name=args.name,
                              insecure=args.ca is None and args.invite is None, model=model, state_dir=args.state_dir,
                              fingerprint=None if args.no_fingerprint else text, tokenizer=args.tokenizer,
                              mirrors=[] if args.no_mirrors else args.mirror and [args.mirror],
                              on_round=lambda readings: told.append(readings["next_round"])) as run:
        optimizer = distro_train.Optimizer(run, sgd if args.sgd else None)
        moments = len(optimizer.state_dict().get("parts", [{"state": {}}])[0]["state"])
        loss = held_out_loss(model, text, run.config, args.device)
        text.given.clear()
        print(f"begins moments={moments} round={run.summary()['next_round']} loss={loss:.4f}", flush=True)
        schedule = (torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
                    if args.schedule or args.mistake == "scheduled" else None)
        if args.mistake == "replaced":
            model.lm_head = torch.nn.Linear(64, 256)
        loader = torch.utils.data.DataLoader(text, batch_size=4, num_workers=args.loader_workers,
                                             multiprocessing_context="fork" if args.loader_workers else None)
        for batch in run.batches(text, torch.stack, args.batch_size, lambda batch: model(batch.to(args.device))):
            loss = model(batch.to(args.device))
            steps.append((run.step, run.steps))
            if args.mistake != "no_backward":
                loss.backward()
            ended = optimizer.step(loss)
            exchanged += ended
            if schedule is not None:
                schedule.step()
            if ended and args.loader_workers:
                next(iter(loader))
            print(f"step loss={loss.item():.4f} exchanged={exchanged} rate={optimizer.param_groups[0].get('lr')}", flush=True)
        readings = {**run.summary(), "exchanged": exchanged, "done": run.done, "told": told, "steps": steps,
                    "given": [index for index in text.given if index < training_samples(text, run.config)],
                    "bytes": {field: sum(getattr(one, field) for one in run.parameters.values()) for field in
                              ("module_bytes", "master_bytes", "host_bytes", "replica_bytes", "rule_bytes")}}
        if args.folder:
            run.save(args.folder)
    pathlib.Path(args.summary).write_text(json.dumps(readings))


if __name__ == "__main__":
    sys.exit(main())
