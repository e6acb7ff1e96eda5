"""distro_train.transformers: Trainer in a run of one worker, in this process. finetune_test.py has two."""
import os
import pathlib
import sys
import unittest.mock

import datasets
import distro_train
import models
import torch
import transformers
import trl
from distro_train.transformers import RunTrainer, RunTrainerMixin
from models import Lines

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from examples import PYTHON, ExampleTest  # noqa: E402
import processes  # noqa: E402

LENGTH = 24


class TrainerTest(ExampleTest):
    def setUp(self):
        super().setUp()
        torch.set_num_threads(1)
        self.tokenizer = models.byte_tokenizer()

    def join(self, name="w", model=None, **overrides):
        """A run of its own and this process in it."""
        initial = self.workspace.folder / f"initial-{name}"
        model = model or models.qwen(self.tokenizer)
        distro_train.save_initial(model, str(initial), outside=["model.embed_tokens.weight"])
        run = self.workspace.write_run(**{"workers": "python", "rounds": 8, "peak_learning_rate": 0.01, **overrides})
        aggregator = self.workspace.start_aggregator("--run", run, "--model", initial, log_name=f"aggregator-{name}",
                                                     data_dir=self.workspace.folder / f"data-{name}")
        run = distro_train.connect(aggregator.grpc, insecure=True, name=name, model=model, fingerprint="lines", timeout=60)
        self.addCleanup(run.close)
        return run, model

    def arguments(self, of=transformers.TrainingArguments, **more):
        return of(**{
            "output_dir": str(self.workspace.folder / "out"), "use_cpu": True, "save_strategy": "no", "report_to": "none",
            "disable_tqdm": True, "logging_steps": 1, "per_device_train_batch_size": 2, **more})

    def trainer(self, run, model, args, **more):
        return RunTrainer(run=run, model=model, args=args, train_dataset=Lines(), **more)

    def logged(self, trainer, key):
        return [line[key] for line in trainer.state.log_history if key in line]

    def test_trains_as_a_loop_over_the_batches_does(self):
        steep = {"warmup_rounds": 1, "peak_learning_rate": 0.06}  # 16 steps are few
        run, model = self.join("loop", **steep)
        optimizer, losses, rates = distro_train.Optimizer(run), [], []
        collate = transformers.default_data_collator
        for batch in run.batches(Lines(), collate, 2, lambda batch: model(**batch).loss):  # as Trainer, to the bit: Muon makes more of other roundings
            loss = model(**batch).loss
            loss.backward()
            optimizer.step(loss)
            losses.append(loss.item())
            rates.append(optimizer.param_groups[0]["lr"])
        losses, rates = [sum(pair) / 2 for pair in zip(losses[::2], losses[1::2])], rates[1::2]
        held_out = run.summary()["last_evaluation_loss"]
        run, model = self.join("trainer", **steep)
        args = self.arguments()
        trainer = self.trainer(run, model, args, data_collator=collate)
        trainer.train()
        self.assertTrue(run.done)
        self.assertEqual(trainer.state.global_step, 16, "8 rounds of 2 local steps")
        for own, wanted in zip(self.logged(trainer, "loss"), losses, strict=True):
            self.assertAlmostEqual(own, wanted, places=3)
        self.assertEqual(self.logged(trainer, "learning_rate"), rates)
        self.assertLess(losses[-1], losses[0] - 0.5)
        self.assertAlmostEqual(run.summary()["last_evaluation_loss"], held_out, places=3)
        self.assertEqual((args.max_steps, args.gradient_accumulation_steps), (-1, 1), "the user's arguments stay")

    def test_takes_optimizer_and_schedule(self):
        run, model = self.join()
        inner = torch.optim.SGD(model.parameters(), lr=0.2)
        schedule = torch.optim.lr_scheduler.LambdaLR(inner, lambda step: 1 / (step + 1))
        trainer = self.trainer(run, model, self.arguments(eval_strategy="steps", eval_steps=5), optimizers=(inner, schedule),
                               eval_dataset=torch.utils.data.Subset(Lines(), range(190, 200)))
        trainer.train()
        self.assertTrue(run.done)
        for step, rate in enumerate(self.logged(trainer, "learning_rate")):
            self.assertAlmostEqual(rate, 0.2 / (step + 1))
        self.assertEqual(len(self.logged(trainer, "eval_loss")), 4, "every five of 16 steps, and at the end")

    def test_of_another_package(self):
        class RunSFTTrainer(RunTrainerMixin, trl.SFTTrainer):
            """As docs/python.md has it."""
        run, model = self.join()
        lines = datasets.Dataset.from_list([{"text": f"line {index} says hello"} for index in range(200)])
        trainer = RunSFTTrainer(run=run, model=model, args=self.arguments(of=trl.SFTConfig, max_length=LENGTH), train_dataset=lines,
                                processing_class=self.tokenizer)
        trainer.train()
        self.assertTrue(run.done)
        losses = self.logged(trainer, "loss")
        self.assertEqual(len(losses), 16, "8 rounds of 2 local steps")
        self.assertLess(losses[-1], losses[0])

    def test_signs(self):
        run, model = self.join(method="signs", local_steps=None, kept_per_block=4, beta=0.9)
        trainer = self.trainer(run, model, self.arguments(bf16=True, gradient_checkpointing=True))
        trainer.train()
        self.assertTrue(run.done)
        rates = self.logged(trainer, "learning_rate")
        self.assertEqual(len(rates), trainer.state.global_step)
        self.assertAlmostEqual(max(rates), 0.01)

    def test_max_steps_ends_before_the_run_does(self):
        run, model = self.join(rounds=30)
        trainer = self.trainer(run, model, self.arguments(max_steps=3))
        trainer.train()
        self.assertEqual((trainer.state.global_step, run.done), (3, False))
        trainer.args.max_steps = 5
        with unittest.mock.patch.object(trainer.optimizer, "step", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            trainer.train()
        with unittest.mock.patch.object(run, "take", wraps=run.take) as take:
            trainer.train()
        self.assertEqual((trainer.state.global_step, run.done), (5, False), "and may go on")
        self.assertLess(take.call_args_list[0].args[0], 7, "the loss of one step: the one that was cut off is not in it")

    def test_goes_on_behind_its_own_count_of_steps(self):
        run, model = self.join(rounds=6)
        trainer = self.trainer(run, model, self.arguments())
        trainer.args.max_steps = 5  # as after a round that was opened again: more steps than were foreseen
        trainer.train()
        self.assertEqual((trainer.state.global_step, run.done), (12, True))

    def test_refuses_what_cannot_be_in_run(self):
        run, model = self.join()
        for args, more, what in (
                ({"auto_find_batch_size": True}, {}, "auto_find_batch_size"),
                ({"load_best_model_at_end": True, "eval_strategy": "steps", "save_strategy": "steps"}, {}, "load_best_model"),
                ({"per_device_train_batch_size": 3}, {}, "3 does not divide the 4 samples"),
                ({"gradient_accumulation_steps": 4}, {}, "4 batches of 2 are not the 4 samples"),
                ({}, {"optimizers": (None, object())}, "the inner optimizer that it acts on"),
                ({}, {"model": torch.compile(model)}, "call module.compile.. before connect"),
                ({}, {"model": models.qwen(self.tokenizer)}, "'model.embed_tokens.weight' of the run is not in it")):
            with self.subTest(what), self.assertRaisesRegex(ValueError, what):
                self.trainer(run, more.pop("model", model), self.arguments(**args), **more)
        args = self.arguments()
        args.fp16 = True
        with self.assertRaisesRegex(ValueError, "fp16.*bf16=True"):
            self.trainer(run, model, args)
        with (unittest.mock.patch.object(transformers.TrainingArguments, "world_size", 2),
              self.assertRaisesRegex(ValueError, "one of 2 processes, and connect saw 1: make TrainingArguments before")):
            self.trainer(run, model, self.arguments())
        args = self.arguments()
        for name in ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED"):
            with (unittest.mock.patch.dict(os.environ, {name: "True"}),
                  self.assertRaisesRegex(ValueError, f"{name}: .*torchrun.*fully_shard")):
                self.trainer(run, model, args)
        with unittest.mock.patch.dict(os.environ, ACCELERATE_USE_FSDP="false"):
            trainer = self.trainer(run, model, args)
        with self.assertRaisesRegex(ValueError, "state_dir"):
            trainer.train(resume_from_checkpoint="somewhere")


class SeveralProcessesTest(ExampleTest):
    """Two processes, as one worker."""

    def setUp(self):
        super().setUp()
        self.run_json = self.workspace.write_run(workers="python", rounds=8, warmup_rounds=1, peak_learning_rate=0.02, samples_per_worker=8)
        distro_train.save_initial(models.qwen(models.byte_tokenizer()), str(self.workspace.folder / "initial"),
                                  outside=["model.embed_tokens.weight"])

    def train(self, wrapped, *flags, processes=2):
        """What the script prints, by name, and the folder that it saved into."""
        name = "-".join([wrapped, *flags])
        aggregator = self.workspace.start_aggregator("--run", self.run_json, "--model", self.workspace.folder / "initial", log_name=f"aggregator-{name}",
                                                     data_dir=self.workspace.folder / f"data-{name}")
        out = self.workspace.folder / f"out-{name}"
        script = self.workspace.start(name, [
            PYTHON, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", processes, HERE / "trainer_processes.py",
            "--aggregator", aggregator.grpc, "--out", out, "--wrapped", wrapped, *flags])
        self.assertEqual(script.exit_code(), 0, script.log())
        return dict(line.split(": ", 1) for line in script.out_path.read_text().splitlines() if ": " in line), out

    def loss_of(self, folder, samples):
        """Of a saved model."""
        model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        with torch.no_grad():
            return model(**transformers.default_data_collator([Lines()[index] for index in samples])).loss.item()

    def numbers(self, text):
        return [float(number) for number in text.split()]

    def losses(self, said):
        self.assertEqual(said["steps"], "16 done: True", "8 rounds of 2 local steps")
        losses = self.numbers(said["losses"])
        self.assertEqual(len(losses), 16)
        return losses

    def test_modules_whole_and_in_parts_learn_as_one_process_does(self):
        alone = self.losses(self.train("alone", processes=1)[0])
        self.assertLess(alone[-1], alone[0] - 0.2)
        for wrapped in ("ddp", "fsdp"):
            said, out = self.train(wrapped)
            for own, wanted in zip(self.losses(said), alone, strict=True):
                self.assertAlmostEqual(own, wanted, delta=0.1, msg=wrapped)  # Muon makes more of other roundings
            evaluated = self.numbers(said["evaluated"])
            self.assertEqual(len(evaluated), 4, "every five of 16 steps, and at the end")
            for saved in ("trained", "checkpoint-16"):
                self.assertAlmostEqual(self.loss_of(out / saved, range(16)), evaluated[-1], places=4, msg=f"{wrapped}: {saved}")
            self.assertAlmostEqual(self.loss_of(out / "trained", range(190, 200)), float(said["held out"]), places=4,
                                   msg="of the samples that run.json holds out, whose last batch is smaller")

    def test_of_another_package(self):
        alone, parts = (self.losses(self.train(wrapped, "--sft", processes=processes)[0]) for wrapped, processes in (("alone", 1), ("fsdp", 2)))
        self.assertLess(alone[-1], alone[0])
        for own, wanted in zip(parts, alone, strict=True):
            self.assertAlmostEqual(own, wanted, delta=0.1)

    def test_autocast(self):
        for wrapped in ("ddp", "fsdp"):
            said, out = self.train(wrapped, "--bf16")
            self.assertLess(self.losses(said)[-1], 5.4)
            rounding = [abs(self.numbers(said[name])[-1] - self.loss_of(out / "trained", samples))
                        for name, samples in (("evaluated", range(16)), ("held out", range(190, 200)))]
            self.assertGreater(max(rounding), 1e-5, f"{wrapped}: one of two may come near by chance")
            self.assertLess(max(rounding), 0.1)


if __name__ == "__main__":
    processes.main()
