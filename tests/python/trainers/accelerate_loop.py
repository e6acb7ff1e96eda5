"""A training loop with accelerate, as a worker of one or several processes."""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import distro_train  # noqa: E402
import torch  # noqa: E402
from accelerate import Accelerator  # noqa: E402
from llama import Llama  # noqa: E402
from train import Text  # noqa: E402

parser = argparse.ArgumentParser()
for flag in ("aggregator", "name", "text", "config"):
    parser.add_argument(f"--{flag}", required=True)
args = parser.parse_args()
accelerator = Accelerator(cpu=True)
model = accelerator.prepare(Llama(json.loads(pathlib.Path(args.config).read_text())))
text = Text(args.text, 16)
with distro_train.connect(args.aggregator, insecure=True, name=args.name, model=model, fingerprint=text) as run:
    optimizer = distro_train.Optimizer(run)
    for batch in run.batches(text, torch.stack, held_out_loss=model):
        loss = model(batch.to(accelerator.device))
        accelerator.backward(loss)
        optimizer.step(loss)
    if accelerator.is_main_process:
        print(f"done: state {run.summary()['state_hash']}")
accelerator.end_training()
