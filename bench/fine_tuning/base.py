"""The base model, which has read Perl's manual and has never seen a question, and the plain fine-tuning that runs are compared with.

    base.py pretrain FOLDER --device cuda                    # FOLDER/base, chat.jsonl and questions.jsonl
    base.py alone FOLDER --out OUT --rate 1e-3 --lora 16     # transformers.Trainer with AdamW on all of a step's conversations:
                                                             # what several workers with All-Reduce compute
"""
import argparse
import pathlib
import random
import sys

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"))
import finetune  # noqa: E402
import topics  # noqa: E402
from runs import CONVERSATIONS, LENGTH, STEPS  # noqa: E402

BATCH = 64
RATE = 3e-3


def model_of(tokenizer):
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        vocab_size=topics.VOCABULARY, hidden_size=256, intermediate_size=704, num_hidden_layers=6, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, max_position_embeddings=LENGTH, tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id))


def pretrain(args):
    args.folder.mkdir(parents=True, exist_ok=True)
    texts = topics.write(args.folder, args.conversations, args.questions)
    tokenizer = topics.tokenizer_of(texts)
    random.Random(1).shuffle(texts)
    tokens = torch.tensor([token for text in texts for token in tokenizer(text).input_ids], device=args.device)
    torch.manual_seed(1)
    model = model_of(tokenizer).to(args.device)
    adamw = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.1)
    rates = torch.optim.lr_scheduler.OneCycleLR(adamw, RATE, total_steps=args.steps, pct_start=0.1)
    for step in range(args.steps):
        starts = torch.randint(len(tokens) - LENGTH, (BATCH, 1))
        batch = tokens[(starts + torch.arange(LENGTH)).to(args.device)]
        with torch.autocast(args.device, torch.bfloat16, enabled=args.device == "cuda"):
            loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad()
        rates.step()
        if step % 50 == 0 or step == args.steps - 1:
            print(f"base: step {step} of {args.steps}, loss {loss.item():.3f}", flush=True)
    model.to(torch.bfloat16).save_pretrained(args.folder / "base")
    tokenizer.save_pretrained(args.folder / "base")


def alone(args):
    transformers.set_seed(args.seed)
    args.model, args.dtype = args.folder / "base", "float32"
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    data = finetune.Conversations(args.folder / "chat.jsonl", tokenizer, LENGTH)
    settings = transformers.TrainingArguments(
        output_dir=str(args.out), use_cpu=args.device == "cpu", per_device_train_batch_size=CONVERSATIONS, max_steps=STEPS,
        learning_rate=args.rate, warmup_steps=STEPS // 10, lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr_rate": 0.1}, weight_decay=0.1, adam_beta2=0.95, max_grad_norm=1.0, seed=args.seed,
        save_strategy="no", report_to="none", disable_tqdm=True, logging_steps=STEPS)
    model = finetune.load(args).to(args.device)
    trainer = transformers.Trainer(model=model, args=settings, train_dataset=data, data_collator=data.collate)
    trainer.train()
    trainer.save_model(args.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    base, plain = commands.add_parser("pretrain"), commands.add_parser("alone")
    for command in base, plain:
        command.add_argument("folder", type=pathlib.Path)
        command.add_argument("--device", default="cpu", help="cpu or cuda")
    base.add_argument("--steps", type=int, default=1200, help="default 1200")
    base.add_argument("--conversations", type=int, default=4000)
    base.add_argument("--questions", type=int, default=640)
    plain.add_argument("--out", type=pathlib.Path, required=True)
    plain.add_argument("--rate", type=float, required=True)
    plain.add_argument("--lora", type=int, default=0, metavar="RANK")
    plain.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    {"pretrain": pretrain, "alone": alone}[args.command](args)


if __name__ == "__main__":
    main()
