"""examples/python/finetune.py with two workers: a whole model of an architecture that is no Llama, and a LoRA adapter.

The workers are transformers.Trainer in a run (distro_train/transformers.py).
"""
import json
import pathlib
import sys
import types

import models
import peft
import safetensors.torch
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from examples import EXAMPLES, PYTHON, ExampleTest  # noqa: E402
from gpu import require_gpu  # noqa: E402
import processes  # noqa: E402

sys.path.insert(0, str(EXAMPLES))
import finetune  # noqa: E402

ROUNDS = 20


class FinetuneTest(ExampleTest):
    script = "finetune.py"

    def setUp(self):
        super().setUp()
        self.tokenizer = models.byte_tokenizer()
        self.base, self.initial, self.data = (self.workspace.folder / name for name in ("base", "initial", "chat.jsonl"))
        models.save(models.qwen(self.tokenizer), self.tokenizer, self.base)
        models.write_conversations(self.data)

    def train(self, name, aggregator, model, *flags):
        return self.start_script(name, *self.flags_of(name, aggregator, model), *flags)

    def flags_of(self, name, aggregator, model):
        return ("train", "--aggregator", aggregator.grpc, "--insecure", "--model", model, "--data", self.data, "--name", name,
                "--out", self.workspace.folder / name)

    def test_trains_model(self):
        self.run_to_its_end("init", "init", "--model", self.base, "--out", self.initial)
        aggregator = self.start_run(self.initial, rounds=ROUNDS, start_workers=3, min_workers=3, peak_learning_rate=0.02)
        workers = [self.train("plain", aggregator, self.base),
                   self.train("autocast", aggregator, self.initial, "--bf16", "--batch_size", "2"),
                   self.train("bf16", aggregator, self.base, "--dtype", "bfloat16")]
        self.assert_equal_states(workers)
        for worker in workers:
            self.assert_learned(worker, 1.0, ROUNDS)
        config = json.loads((self.initial / "config.json").read_text())
        self.assertEqual(config["distro_outside"], ["model.embed_tokens.weight"])
        first, *others = (transformers.AutoModelForCausalLM.from_pretrained(self.workspace.folder / worker.name).state_dict()
                          for worker in workers)
        for other in others:
            self.assertTrue(all(torch.equal(value, other[name]) for name, value in first.items()))
        self.assertEqual(transformers.AutoTokenizer.from_pretrained(self.workspace.folder / "bf16").get_vocab(), self.tokenizer.get_vocab())

    def test_on_a_gpu(self):
        require_gpu(self, PYTHON)
        for lora, rate, by in ((), 0.02, 1.0), (("--lora", "4", "--dtype", "bfloat16"), 0.1, 0.2):
            initial = self.workspace.folder / f"initial{len(lora)}"
            self.run_to_its_end(f"init{len(lora)}", "init", "--model", self.base, "--out", initial, *lora)
            self.workspace.data_dir = self.workspace.folder / f"data{len(lora)}"
            aggregator = self.start_run(initial, rounds=ROUNDS, peak_learning_rate=rate)
            workers = [self.train(f"{name}{len(lora)}", aggregator, self.base, *lora, "--device", *flags)
                       for name, flags in (("gpu", ("cuda", "--bf16")), ("host", ("cpu",)))]
            self.assert_equal_states(workers)
            for worker in workers:
                self.assert_learned(worker, by, ROUNDS)
                self.assertTrue(list((self.workspace.folder / worker.name).glob("*.safetensors")), "saved")
            aggregator.kill()

    def test_trains_adapter_on_bf16_base(self):
        adapter = ("--lora", "4", "--dtype", "bfloat16")
        self.run_to_its_end("init", "init", "--model", self.base, "--out", self.initial, *adapter)
        aggregator = self.start_run(self.initial, rounds=ROUNDS, peak_learning_rate=0.1)
        archiver = self.workspace.start_archiver(aggregator.grpc, "--snapshot_interval_rounds", ROUNDS)
        workers = [self.train(name, aggregator, self.base, *adapter) for name in ("one", "two")]
        self.assert_equal_states(workers)
        self.assertEqual(archiver.exit_code(), 0, archiver.log())
        for worker in workers:
            self.assert_learned(worker, 0.2, ROUNDS)
        run = safetensors.torch.load_file(self.initial / "model.safetensors")
        self.assertTrue(run and all("lora_" in name for name in run), "only adapters are trained and sent")
        base = transformers.AutoModelForCausalLM.from_pretrained(self.base)
        before = base.state_dict()
        published = self.workspace.folder / "published" / f"round-{ROUNDS}"
        opened = transformers.AutoModelForCausalLM.from_pretrained(published).state_dict()  # with the base that it names
        of_worker = transformers.AutoModelForCausalLM.from_pretrained(self.workspace.folder / "one").state_dict()
        self.assertEqual(opened.keys(), of_worker.keys())
        self.assertTrue(all(torch.equal(value, of_worker[name]) for name, value in opened.items()))
        self.assertTrue(any("lora_B" in name and value.any() for name, value in opened.items()), "it is the trained adapter")
        adapted = peft.PeftModel.from_pretrained(base, self.workspace.folder / "one")
        whole = {name.replace(".base_layer", "").removeprefix("base_model.model."): value
                 for name, value in adapted.state_dict().items()}
        self.assertTrue(all(torch.equal(value, whole[name]) for name, value in before.items()), "the model under it stays")

    def test_trains_adapter_in_parts(self):
        """One worker is two processes, each of which has a part of the bf16 base and of the adapter."""
        adapter = ("--lora", "4", "--dtype", "bfloat16")
        self.run_to_its_end("init", "init", "--model", self.base, "--out", self.initial, *adapter)
        aggregator = self.start_run(self.initial, rounds=ROUNDS, peak_learning_rate=0.1, samples_per_worker=4)
        flags = [*self.flags_of("one", aggregator, self.base), *adapter, "--bf16"]
        parts = self.workspace.start("parts", [PYTHON, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
                                               EXAMPLES / self.script, *flags])
        whole = self.train("two", aggregator, self.base, *adapter)
        self.assert_equal_states([parts, whole])
        self.assert_learned(parts, 0.2, ROUNDS)
        saved = [safetensors.torch.load_file(self.workspace.folder / name / "adapter_model.safetensors") for name in ("one", "two")]
        self.assertEqual(saved[0].keys(), saved[1].keys())
        self.assertTrue(all(torch.equal(value, saved[1][name]) for name, value in saved[0].items()))

    def test_refuses_other_base(self):
        other = self.workspace.folder / "other"
        models.save(models.qwen(self.tokenizer, seed=2), self.tokenizer, other)
        self.run_to_its_end("init", "init", "--model", self.base, "--out", self.initial, "--lora", "4")
        aggregator = self.start_run(self.initial, rounds=10)
        differs = r"OtherModel: 'base_model.model.model\S+' differs"
        for name, flags, what in (("base", (other, "--lora", "4"), differs), ("type", (self.base, "--lora", "4", "--dtype", "bfloat16"), differs),
                                  ("rank", (self.base, "--lora", "8"), "OtherModel: the model has other tensors to train")):
            refused = self.train(name, aggregator, *flags)
            self.assertEqual(refused.exit_code(), 1)
            self.assertRegex(refused.log(), what)

    def test_other_lengths_are_other_data(self):
        self.run_to_its_end("init", "init", "--model", self.base, "--out", self.initial)
        aggregator = self.start_run(self.initial, rounds=10)
        first = self.train("first", aggregator, self.base)
        aggregator.await_state("first", "active")
        other = self.train("other", aggregator, self.base, "--length", "100")
        self.assertEqual(other.exit_code(), 1)
        self.assertIn("OtherData", other.log())
        first.kill()


class ConversationsTest(ExampleTest):
    def setUp(self):
        super().setUp()
        self.tokenizer = models.byte_tokenizer()

    def data(self, *conversations, length=100):
        path = self.workspace.folder / "data.jsonl"
        path.write_text("".join(json.dumps({"messages": [{"role": role, "content": content} for role, content in turns]}) + "\n"
                                for turns in conversations))
        return finetune.Conversations(path, self.tokenizer, length)

    def learned(self, sample):
        return self.tokenizer.decode([label for label in sample["labels"] if label != -100])

    def test_only_answers_are_learned(self):
        data = self.data([("user", "Hi"), ("assistant", "Hello"), ("user", "Bye"), ("assistant", "So long"), ("user", "?")],
                         [("user", "A longer question"), ("assistant", "x")])
        self.assertEqual(self.tokenizer.decode(data[0]["input_ids"]),
                         "<|user|>Hi<|end|><|assistant|>Hello<|end|><|user|>Bye<|end|><|assistant|>So long<|end|>")
        self.assertEqual(self.learned(data[0]), "Hello<|end|>So long<|end|>")
        batch = data.collate([data[0], data[1]])
        self.assertEqual({name: value.shape[0] for name, value in batch.items()},
                         {"input_ids": 2, "labels": 2, "attention_mask": 2})
        self.assertEqual(batch["attention_mask"].sum(1).tolist(), [len(data[0]["labels"]), len(data[1]["labels"])])
        self.assertTrue((batch["labels"][batch["attention_mask"] == 0] == -100).all())

    def refusal(self, data):
        with self.assertRaises(SystemExit) as raised:
            data.check()
        return str(raised.exception)

    def test_names_line_without_answer(self):
        for turns, length in (([("user", "Hi")], 100), ([("user", "a" * 50), ("assistant", "x")], 20)):
            self.assertIn("line 1: ValueError('no answer", self.refusal(self.data(turns, length=length)))

    def test_names_every_bad_line(self):
        good, bad = [("user", "Hi"), ("assistant", "x")], [("user", "Hi")]
        self.data(good, good).check()
        self.assertEqual([line.partition(":")[0] for line in self.refusal(self.data(good, bad, good, bad)).splitlines()], ["line 2", "line 4"])
        self.assertEqual([line.partition(":")[0] for line in self.refusal(self.data(*[bad] * 13)).splitlines()],
                         [*(f"line {number}" for number in range(1, 11)), "and 3 more"])
        data = self.data(good)
        data.lines += ["{", "{}"]
        self.assertRegex(self.refusal(data), r"^line 2: JSONDecodeError.*\nline 3: KeyError\('messages'\)$")

    def test_reads_every_line_before_it_connects(self):
        self.data([("user", "Hi")])
        self.tokenizer.save_pretrained(self.workspace.folder)
        with self.assertRaisesRegex(SystemExit, "line 1: "):  # and needs no other argument until then
            finetune.train(types.SimpleNamespace(model=self.workspace.folder, data=self.workspace.folder / "data.jsonl", length=100))

    def test_refuses_template_that_rewrites_turns(self):
        self.tokenizer.chat_template = "{{ messages | length }}" + models.TEMPLATE
        self.assertIn("line 1: ValueError('the template", self.refusal(self.data([("user", "Hi"), ("assistant", "Hello")])))

    def test_has_fingerprint_of_all_settings(self):
        turns = [("user", "Hi"), ("assistant", "Hello")]
        same = {self.data(turns).fingerprint, self.data(turns).fingerprint}
        other = {self.data(turns, turns).fingerprint, self.data(turns, length=99).fingerprint}
        self.tokenizer.chat_template += " "
        other.add(self.data(turns).fingerprint)
        self.assertEqual((len(same), len(other), len(same | other)), (1, 3, 4))


if __name__ == "__main__":
    processes.main()
