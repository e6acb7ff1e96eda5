"""Trainer in the processes that torchrun starts, as one worker: alone, by DistributedDataParallel, or in parts by FSDP2."""
import argparse
import pathlib

import datasets
import distro_train
import torch
import transformers
import trl
from distro_train.transformers import RunTrainer, RunTrainerMixin
from torch.distributed.fsdp import fully_shard

import models


def in_parts(model):
    for layer in model.model.layers:
        fully_shard(layer)
    return fully_shard(model)


WRAPPED = {"alone": lambda model: model, "ddp": torch.nn.parallel.DistributedDataParallel, "fsdp": in_parts}


class RunSFTTrainer(RunTrainerMixin, trl.SFTTrainer):
    """As docs/python.md has it."""


def main():
    parser = argparse.ArgumentParser()
    for flag in ("aggregator", "out"):
        parser.add_argument(f"--{flag}", required=True)
    parser.add_argument("--wrapped", choices=WRAPPED, required=True)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--sft", action="store_true", help="by trl.SFTTrainer")
    options = parser.parse_args()
    torch.set_num_threads(1)
    settings = {"output_dir": options.out, "use_cpu": True, "save_strategy": "steps", "save_steps": 6, "report_to": "none",
                "disable_tqdm": True, "logging_steps": 1, "per_device_train_batch_size": 2, "bf16": options.bf16,
                "eval_strategy": "steps", "eval_steps": 5}
    tokenizer = models.byte_tokenizer()
    if options.sft:
        args = trl.SFTConfig(**settings, max_length=24)
        data = datasets.Dataset.from_list([{"text": f"line {index} says hello"} for index in range(200)])
        make, more = RunSFTTrainer, {"processing_class": tokenizer, "train_dataset": data, "eval_dataset": data.select(range(16))}
    else:
        args = transformers.TrainingArguments(**settings)
        make, more = RunTrainer, {"data_collator": transformers.default_data_collator, "train_dataset": models.Lines(),
                                  "eval_dataset": models.Lines(16)}
    model = WRAPPED[options.wrapped](models.qwen(tokenizer, seed=args.process_index))
    with distro_train.connect(options.aggregator, insecure=True, name="processes", model=model, fingerprint="lines", timeout=60) as run:
        trainer = make(run=run, model=model, args=args, **more)
        trainer.evaluate()
        trainer.train()
        trainer.save_model(str(pathlib.Path(options.out) / "trained"))
        if trainer.is_world_process_zero():
            print("steps:", trainer.state.global_step, "done:", run.done)
            print("losses:", *[line["loss"] for line in trainer.state.log_history if "loss" in line])
            print("held out:", run.summary()["last_evaluation_loss"])
            print("evaluated:", *[line["eval_loss"] for line in trainer.state.log_history if "eval_loss" in line])
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
