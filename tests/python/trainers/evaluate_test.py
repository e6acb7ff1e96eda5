"""examples/python/evaluate.md: lm-eval with the task of the examples, on a checkpoint that the archiver published."""
import json
import pathlib
import re
import sys

import lm_eval.tasks
import models
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from examples import EXAMPLES, PYTHON, ExampleTest  # noqa: E402
import processes  # noqa: E402

CHECKOUT = EXAMPLES.parent.parent
PAGE = (EXAMPLES / "evaluate.md").read_text()
QUESTIONS = [json.loads(line) for line in (EXAMPLES / "task" / "questions.jsonl").read_text().splitlines()]
ROUNDS = 8


def answered(model, tokenizer):
    """The share of QUESTIONS whose right choice is the likeliest."""
    right = 0
    for question in QUESTIONS:
        start = len(tokenizer(question["question"]).input_ids)
        likelihoods = []
        for choice in question["choices"]:
            tokens = torch.tensor([tokenizer(question["question"] + choice).input_ids])
            with torch.no_grad():
                logs = model(tokens).logits[0, :-1].log_softmax(-1)
            likelihoods.append(logs.gather(1, tokens[0, 1:, None])[start - 1:].sum().item())
        right += likelihoods.index(max(likelihoods)) == question["answer"]
    return right / len(QUESTIONS)


def with_included(page):
    """The text of a task's file, and of the one that it goes on from."""
    text = page.read_text()
    included = re.search(r"^include: (\S+)$", text, re.M)
    return text + with_included(page.parent / included[1]) if included else text


class EvaluateTest(ExampleTest):
    script = "finetune.py"

    def test_takes_checkpoint(self):
        space = self.workspace
        tokenizer = models.byte_tokenizer()
        base, initial, data = (space.folder / name for name in ("base", "initial", "chat.jsonl"))
        models.save(models.qwen(tokenizer), tokenizer, base)
        models.write_conversations(data)
        self.run_to_its_end("init", "init", "--model", base, "--out", initial)
        aggregator = self.start_run(initial, rounds=ROUNDS, start_workers=1, min_workers=1, peak_learning_rate=0.02)
        archiver = space.start_archiver(aggregator.grpc)
        worker = self.start_script("worker", "train", "--aggregator", aggregator.grpc, "--insecure", "--model", initial, "--data",
                                   data, "--name", "worker", "--out", space.folder / "worker")
        self.assert_equal_states([worker])
        checkpoint = space.folder / "published" / f"round-{ROUNDS}"
        processes.until(lambda: archiver.child.poll() is not None or checkpoint.exists(), "the checkpoint is published")
        share = answered(transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32), tokenizer)
        command = re.search(r"^lm-eval (--model hf .*own_questions.*)$", PAGE, re.M)[1]
        command = command.replace("models/round-1000", str(checkpoint))
        evaluated = space.start("lm-eval", [PYTHON, "-B", "-c", f"import os, runpy; os.chdir({str(CHECKOUT)!r}); "
                                            "runpy.run_module('lm_eval', run_name='__main__')", *command.split(),
                                            "--output_path", space.folder / "results"])
        self.assertEqual(evaluated.exit_code(), 0, evaluated.log())
        results = json.loads(next((space.folder / "results").rglob("results_*.json")).read_text())
        self.assertEqual(results["n-samples"]["own_questions"]["effective"], len(QUESTIONS))
        self.assertAlmostEqual(results["results"]["own_questions"]["acc,none"], share)

    def test_names_tasks_of_report(self):
        table = re.findall(r"^\| .* \| `(\w+)` \| `(\w+)` \|", PAGE, re.M)
        self.assertEqual(len(table), 6)
        known = lm_eval.tasks.TaskManager()
        command = re.search(r"--tasks (arc\S+)", PAGE)[1]
        self.assertEqual([task for task, _ in table], command.split(","))
        for task, metric in table:
            self.assertIn(task, known.all_subtasks)
            described = known.task_index[task]
            page = pathlib.Path(described["yaml_path"] if isinstance(described, dict) else described.yaml_path)
            self.assertIn(f"- metric: {metric}", with_included(page))


if __name__ == "__main__":
    processes.main()
