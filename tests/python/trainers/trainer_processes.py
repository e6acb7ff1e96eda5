"""Trainer in the processes that torchrun starts, as one worker: alone, by DistributedDataParallel, or in parts by FSDP2."""
import argparse
import pathlib
import sys

import distro_train
import torch
import transformers
from distro_train.transformers import RunTrainer
from torch.distributed.fsdp import fully_shard

import models


def in_parts(model):
    for layer in model.model.layers:
        fully_shard(layer)
    return fully_shard(model)


WRAPPED = {"alone": lambda model: model, "ddp": torch.nn.parallel.DistributedDataParallel, "fsdp": in_parts}


def main():
    parser = argparse.ArgumentParser()
    for flag in ("aggregator", "out"):
        parser.add_argument(f"--{flag}", required=True)
    parser.add_argument("--wrapped", choices=WRAPPED, required=True)
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    args = transformers.TrainingArguments(
        output_dir=options.out, use_cpu=True, save_strategy="steps", save_steps=6, save_only_model=True, report_to="none",
        disable_tqdm=True, logging_steps=1, per_device_train_batch_size=1, bf16=options.bf16, eval_strategy="steps", eval_steps=5)
    model = WRAPPED[options.wrapped](models.qwen(models.byte_tokenizer(), seed=args.process_index))
    with distro_train.connect(options.aggregator, insecure=True, name="processes", model=model, fingerprint="lines", timeout=60) as run:
        trainer = RunTrainer(run=run, model=model, args=args, train_dataset=models.Lines(), eval_dataset=models.Lines(16),
                             data_collator=transformers.default_data_collator)
        trainer.train()
        trainer.save_model(str(pathlib.Path(options.out) / "trained"))
        if trainer.is_world_process_zero():
            print("steps:", trainer.state.global_step, "done:", run.done)
            print("losses:", *[line["loss"] for line in trainer.state.log_history if "loss" in line])
            print("evaluated:", *[line["eval_loss"] for line in trainer.state.log_history if "eval_loss" in line])
            print("held out:", run.summary()["last_evaluation_loss"])
            print("done: state", run.summary()["state_hash"])
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
