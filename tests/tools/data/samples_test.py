"""Tokens of a tokenizer.json from text to samples: distro-data converts, a worker trains and samples, generate goes on."""

import json
import os
import subprocess
import sys
import unittest

import processes
from helpers import TEXTS, json_tokenizer, run_data
from translate_test import BYTE_LEVEL

BINARIES = processes.programs_in(os.environ["DISTRO_BIN"])
PROMPT = "The cat"


class SamplesTest(processes.ProcessTest):
    binaries = BINARIES

    def test_continues_text_of_tokenizer_json(self):
        space = self.workspace
        folder = space.folder
        tokenizer = json_tokenizer(folder / "tokenizer.json", **BYTE_LEVEL)
        (folder / "corpus.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS * 200))
        converted = run_data("--tokenizer", tokenizer, "--out", folder / "shards", folder / "corpus.jsonl")
        self.assertEqual(converted.returncode, 0, converted.stderr)
        index = json.loads((folder / "shards" / "index.json").read_text())
        space.text = folder / "shards" / "index.json"
        space.model = {"vocab_size": index["vocabulary_size"]}
        command = f"{sys.executable} -B -m distro_data tokenizer {tokenizer}"

        aggregator = space.create_run(rounds=300, start_workers=1, peak_learning_rate=0.01)
        worker = space.start_worker("w", aggregator.grpc, "--state_dir", folder / "state", "--checkpoint_dir", folder / "trained",
                                    "--sample_prompt", PROMPT, "--sample_interval_rounds", 0, "--sample_tokens", 8,
                                    "--tokenizer_command", command)
        self.finish([worker])
        (sample,) = [json.loads(line) for line in (folder / "state" / "samples.jsonl").read_text().splitlines()]
        self.assertTrue(sample["text"].startswith(PROMPT), sample)
        generate = [BINARIES.worker, "generate", "--model", folder / "trained", "--prompt", PROMPT, "--tokenizer_command", command]
        said = subprocess.run([*map(str, generate), "--tokens", "8"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, sample["text"] + "\n")
        # It has learned its few texts: the likeliest words after these two are theirs.
        said = subprocess.run([*map(str, generate), "--tokens", "6", "--temperature", "0"], capture_output=True, text=True, check=True).stdout
        self.assertTrue(said.startswith("The cat sat on"), said)


if __name__ == "__main__":
    unittest.main()
