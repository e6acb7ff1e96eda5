"""--sample_prompt: text that a worker's model generates during training."""
import json
import subprocess

import processes
from processes import ProcessTest

ROUNDS = 20
PROMPT = "the cat"


class SamplesTest(ProcessTest):
    def train(self, *flags, folder=None):
        """One worker of a run of its own, to the end."""
        space = folder or self.workspace
        aggregator = space.create_run(rounds=ROUNDS, start_workers=1)
        worker = space.start_worker("w", aggregator.grpc, "--checkpoint_dir", space.folder / "trained", *flags)
        self.finish([worker])
        return worker

    def generate(self, *flags):
        command = [self.binaries.worker, "generate", "--model", self.workspace.folder / "trained", "--prompt", PROMPT, *flags]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout.removesuffix("\n")

    def test_samples_are_written_and_change_nothing(self):
        space = self.workspace
        state = space.folder / "state"
        worker = self.train("--state_dir", state, "--sample_prompt", PROMPT, "--sample_interval_rounds", 8, "--sample_tokens", 9,
                            "--ranks", 2, "--sharding", "full_shard", "--micro_batch_samples", 2)
        samples = [json.loads(line) for line in (state / "samples.jsonl").read_text().splitlines()]
        self.assertEqual([sample["round"] for sample in samples], [8, 16, ROUNDS])
        # The run's samples have 16 tokens, so the model has seen all of these 7 and 9.
        self.assertEqual(samples[-1]["text"], self.generate("--tokens", 9))
        for sample in samples:
            self.assertTrue(sample["text"].startswith(PROMPT), sample)
            worker.find(rf'sample round={sample["round"]} text=')
        other = processes.Workspace(self.binaries)
        self.addCleanup(other.close)
        without = self.train("--ranks", 2, "--sharding", "full_shard", "--micro_batch_samples", 2, folder=other)
        self.assertEqual(worker.summary()["state_hash"], without.summary()["state_hash"])
        self.assertNotIn("sample ", without.log())

    def test_tells_failing_tokenizer_at_start(self):
        space = self.workspace
        aggregator = space.create_run(rounds=ROUNDS, start_workers=1)
        fails = space.folder / "fails"
        fails.write_text("echo no such file >&2; exit 1\n")
        command = f"sh {fails}"
        worker = space.start_worker("w", aggregator.grpc, "--sample_prompt", PROMPT, "--tokenizer_command", command)
        self.assertEqual(worker.exit_code(), 2, worker.log())
        self.assertIn(f"--tokenizer_command: {command} encode: ended with 1: no such file", worker.log())

    def test_tokens_that_are_no_bytes_need_a_tokenizer(self):
        space = self.workspace
        space.model = {"vocab_size": 300}
        aggregator = space.create_run(rounds=ROUNDS, start_workers=1)
        worker = space.start_worker("w", aggregator.grpc, "--sample_prompt", PROMPT)
        self.assertEqual(worker.exit_code(), 2, worker.log())
        self.assertIn("--tokenizer_command: is required, since the model has 300 tokens and bytes 256", worker.log())

    def test_training_goes_on_where_a_sample_fails(self):
        state = self.workspace.folder / "state"
        command = "sh -c 'test $0 = encode && echo 1'"
        worker = self.train("--state_dir", state, "--sample_prompt", PROMPT, "--tokenizer_command", command)
        self.assertIn(f"sample not made round={ROUNDS}", worker.log())
        self.assertEqual((state / "samples.jsonl").read_text(), "")


if __name__ == "__main__":
    processes.main()
