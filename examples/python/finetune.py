"""Fine-tunes a language model of Hugging Face on conversations, in a run of DisTrO: all of it, or LoRA adapters.

    python finetune.py init --model Qwen/Qwen3-0.6B --lora 16 --out initial    # once: the run's first parameters
    distroctl run create HOST:7700 --run run.json --model initial              # once: the run
    distroctl invite w1 --aggregator HOST:7700 ...                             # once for each machine: w1.invite
    python finetune.py train --model Qwen/Qwen3-0.6B --lora 16 --invite w1.invite --data chat.jsonl
    torchrun --nproc_per_node 8 finetune.py train --device cuda ...            # a model that needs several GPUs

With --lora only the adapters are trained and sent; without it the whole model is. docs/fine_tuning.md has a run.json,
with rates that were measured, and says when a run is worth it. A line of the data is a conversation:
{"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}, ...]}. Only the
assistant's tokens are learned: all others have the label -100, which the loss ignores.
"""
import argparse
import hashlib
import json
import logging
import pathlib

import distro_train
import torch
from distro_train.transformers import RunTrainer
from peft import LoraConfig, get_peft_model
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainingArguments


class Conversations:
    """A map-style data set: tokens and labels of the conversation of a line."""

    def __init__(self, path, tokenizer, length):
        self.lines = path.read_text(encoding="utf-8").splitlines()
        self.tokenizer, self.length = tokenizer, length
        # All workers need the same data, tokens and length. A worker with another fingerprint is refused.
        what = json.dumps([self.lines, tokenizer.chat_template, sorted(tokenizer.get_vocab().items()), length])
        self.fingerprint = "chat-" + hashlib.sha256(what.encode()).hexdigest()

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        messages = json.loads(self.lines[index])["messages"]
        tokens, labels = [], []
        for turn in (turn for turn, message in enumerate(messages) if message["role"] == "assistant"):
            before, after = self.render(messages[:turn], add_generation_prompt=True), self.render(messages[:turn + 1])
            if before[:len(tokens)] != tokens or after[:len(before)] != before:
                raise ValueError("the template writes earlier turns anew: split the conversation")
            labels += [-100] * (len(before) - len(tokens)) + after[len(before):]
            tokens = after
        if all(label == -100 for label in labels[1:self.length]):
            raise ValueError(f"no answer within the first {self.length} tokens")
        sample = {"input_ids": tokens, "labels": labels, "attention_mask": [1] * len(tokens)}
        return {key: values[:self.length] for key, values in sample.items()}

    def check(self):
        """Ends the program where a line is no sample: in a run it would stop one worker after another."""
        bad = []
        for index in range(len(self)):
            try:
                self[index]
            except Exception as error:  # the template has its own
                bad.append(f"line {index + 1}: {error!r}")
        if len(bad) > 10:
            bad[10:] = [f"and {len(bad) - 10} more"]
        if bad:
            raise SystemExit("\n".join(bad))

    def render(self, messages, **options):
        return self.tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False, **options)

    def collate(self, samples):
        """Makes one batch of samples of different lengths, padded at their ends."""
        padding = {"input_ids": self.tokenizer.pad_token_id or 0, "labels": -100, "attention_mask": 0}
        return {key: pad_sequence([torch.tensor(sample[key]) for sample in samples], True, padding_value=pad)
                for key, pad in padding.items()}


def load(args):
    """The model; what is trained of it requires a gradient. Adapters are float32 on any --dtype."""
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=getattr(torch, args.dtype))
    adapters = LoraConfig(r=args.lora, lora_alpha=2 * args.lora, target_modules="all-linear") if args.lora else None
    return get_peft_model(model, adapters) if adapters else model


def in_parts(model, settings):
    """Each process of torchrun has a part of every tensor."""
    mesh = init_device_mesh(settings.device.type, (settings.world_size,))
    for layer in list(model.modules()):
        if type(layer).__name__ in model._no_split_modules:
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def init(args):
    model = load(args)
    distro_train.save_initial(model, args.out)
    AutoTokenizer.from_pretrained(args.model).save_pretrained(args.out)
    print(f"{sum(p.numel() for p in model.parameters() if p.requires_grad):,} parameters in {args.out}")


def train(args):
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    data = Conversations(args.data, tokenizer, args.length)
    data.check()
    settings = TrainingArguments(output_dir=args.out, use_cpu=args.device == "cpu", bf16=args.bf16, save_strategy="no",
                                 report_to="none", disable_tqdm=True)  # also joins the processes of torchrun
    model = in_parts(load(args), settings) if settings.world_size > 1 else load(args).to(settings.device)
    with distro_train.connect(args.aggregator, invite=args.invite, name=args.name, insecure=args.insecure, model=model,
                              state_dir=args.state_dir, state_interval_rounds=args.state_interval_rounds,
                              fingerprint=data.fingerprint) as run:
        of_process = run.config["samples_per_worker"] // settings.world_size
        settings.per_device_train_batch_size = args.batch_size or of_process
        settings.logging_steps = run.config.get("local_steps", 1)
        trainer = RunTrainer(run=run, model=model, args=settings, train_dataset=data, data_collator=data.collate)
        trainer.train()  # until the run is done
        run.save(args.out)  # with --lora a folder of peft; the tokenizer is beside it
        if settings.process_index == 0:
            print(f"done: state {run.summary()['state_hash']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("init", help="write what the run begins with")
    work = commands.add_parser("train", help="train in the run until it is over")
    for command in (make, work):
        command.add_argument("--model", required=True, help="name or folder; without --lora also the folder of init")
        command.add_argument("--lora", type=int, default=0, metavar="RANK", help="train adapters of this rank only")
        command.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"),
                             help="of the model in memory; with --lora the same for init and all workers")
        command.add_argument("--out", required=command is make, default="trained", help="folder to write")
    work.add_argument("--invite", help="this worker's file: it says where the aggregator is and proves who this is")
    work.add_argument("--aggregator", metavar="HOST:PORT", help="in the place of the invite's")
    work.add_argument("--data", required=True, type=pathlib.Path, help="conversations, the same on every worker")
    work.add_argument("--length", type=int, default=1024, help="tokens that a conversation is cut to (default 1024)")
    work.add_argument("--name", help="of this worker where there is no invite: one of its own in the run")
    work.add_argument("--state_dir", help="folder of this worker, to go on after a crash with its momentum")
    work.add_argument("--state_interval_rounds", type=int, default=1, help="rounds between saves (default 1)")
    work.add_argument("--insecure", action="store_true", help="no TLS, on one machine: with --aggregator and --name")
    work.add_argument("--batch_size", type=int, help="samples in memory at once; smaller ones are accumulated")
    work.add_argument("--bf16", action="store_true", help="compute in bf16; the parameters stay f32")
    work.add_argument("--device", default="cpu", help="cpu or cuda")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    {"init": init, "train": train}[args.command](args)


if __name__ == "__main__":
    main()
