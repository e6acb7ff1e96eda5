"""What a fine-tuned model answers, by lm-eval. A process of its own for one base model: `begin`, then `of` for each model."""
import math

import lm_eval
import peft
import torch
import transformers
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

_base = _device = _tokenizer = _task = None


def begin(folder, device, threads):
    """The questions and the base model are in `folder`."""
    global _base, _device, _tokenizer, _task
    torch.set_num_threads(threads)
    _base, _device = folder / "base", device
    _tokenizer = transformers.AutoTokenizer.from_pretrained(_base)
    _task = {"task": "topics", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(folder / "questions.jsonl")}},
             "test_split": "test", "output_type": "multiple_choice", "doc_to_text": "{{question}}", "doc_to_choice": "{{choices}}",
             "doc_to_target": "answer", "target_delimiter": "", "metric_list": [{"metric": "acc"}]}


def of(folder):
    """{accuracy, loss, device}: the share of questions whose right topic is the likeliest, and the mean of -log of its share among the topics."""
    adapter = (folder / "adapter_config.json").exists()
    model = transformers.AutoModelForCausalLM.from_pretrained(_base if adapter else folder, dtype=torch.float32).to(_device)
    if adapter:
        model = peft.PeftModel.from_pretrained(model, folder)
    evaluated = lm_eval.simple_evaluate(HFLM(pretrained=model, tokenizer=_tokenizer, batch_size=64), tasks=[_task], apply_chat_template=True,
                                        bootstrap_iters=0, task_manager=TaskManager(include_defaults=False))
    losses = []
    for sample in evaluated["samples"]["topics"]:
        logs = torch.tensor([answer[0] for answer in sample["filtered_resps"]])
        losses.append(-logs.log_softmax(0)[sample["target"]].item())
    return {"accuracy": evaluated["results"]["topics"]["acc,none"], "loss": math.fsum(losses) / len(losses),
            "device": torch.cuda.get_device_name() if _device == "cuda" else "CPU"}
