"""Whole conversions: the worker reads what was written, the same input gives the same bytes, and a conversion that was
killed at any moment ends with them too."""

import hashlib
import json
import pathlib
import signal
import struct
import subprocess
import sys
import time
import unittest

from distro_data import convert, encoders, errors, sources
from helpers import TEXTS, WORKER, FolderTest, contents, json_tokenizer, sentencepiece_model
from killed import run_fork

KILLED = pathlib.Path(__file__).with_name("killed.py")
ROWS = [{"text": f"{text} number {i}\n" * (i % 7)} for i, text in enumerate(TEXTS * 8)]  # every seventh is empty


def read_back(folder):
    """(index, tokens, documents as lists of tokens), checked against each other."""
    folder = pathlib.Path(folder)
    index = json.loads((folder / "index.json").read_text())
    letter = {"uint16": "H", "uint32": "I"}[index["dtype"]]
    tokens = []
    for shard in index["shards"]:
        data = (folder / shard["name"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == shard["sha256"]
        assert len(data) == shard["tokens"] * struct.calcsize(letter)
        tokens += struct.unpack(f"<{shard['tokens']}{letter}", data)
    assert len(tokens) == index["tokens"]
    wide = struct.pack(f"<Q{len(tokens)}I", len(tokens), *tokens)
    assert hashlib.sha256(wide).hexdigest() == index["fingerprint"]
    data = (folder / index["documents"]["name"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == index["documents"]["sha256"]
    ends = struct.unpack(f"<{index['documents']['count']}Q", data)
    assert ends[-1] == len(tokens)
    return index, tokens, [tokens[begin:end] for begin, end in zip((0, *ends), ends)]


def fingerprint_of_worker(data):
    done = subprocess.run([WORKER, "fingerprint", "--data", data], capture_output=True, text=True)
    return done.stdout.split()[0] if done.returncode == 0 else done.stderr


class ConversionTest(FolderTest):
    def convert(self, out, *arguments):
        self.run_data("--out", self.folder / out, *arguments)
        return self.folder / out

    def test_is_read_by_worker(self):
        tokenizers = {"bytes": "bytes", "json": json_tokenizer(self.folder / "tokenizer.json"),
                      "sentencepiece": sentencepiece_model(self.folder / "spiece.model")}
        corpus = self.write_jsonl("a.jsonl", ROWS)
        for name, tokenizer in tokenizers.items():
            with self.subTest(name):
                out = self.convert(name, "--tokenizer", tokenizer, "--shard_tokens", "500", corpus)
                index, _, _ = read_back(out)
                self.assertGreater(len(index["shards"]), 2)
                self.assertEqual(fingerprint_of_worker(out / "index.json"), index["fingerprint"])

    def test_wide_tokens_are_read_by_the_worker_too(self):
        value = json.loads(pathlib.Path(json_tokenizer(self.folder / "tokenizer.json")).read_text())
        value["model"]["vocab"]["<far>"] = 128000
        value["added_tokens"].append({"id": 128000, "content": "<far>", "single_word": False, "lstrip": False, "rstrip": False,
                                      "normalized": False, "special": True})
        out = self.convert("out", "--tokenizer", self.write("wide.json", json.dumps(value)), "--end_token", "<far>",
                           self.write("a.txt", TEXTS[0]), self.write("b.txt", TEXTS[1]))
        index, tokens, documents = read_back(out)
        self.assertEqual((index["dtype"], index["vocabulary_size"], index["tokenizer"]["end_token"]), ("uint32", 128001, 128000))
        self.assertEqual([document[-1] for document in documents], [128000, 128000])
        self.assertEqual(fingerprint_of_worker(out / "index.json"), index["fingerprint"])

    # The golden of both readers: worker/data's FingerprintIsFixed has the same.
    def test_bytes_of_text_files_are_the_tokens_of_the_text(self):
        files = [self.write("a.txt", "a"), self.write("b.txt", "bc")]
        index, tokens, documents = read_back(self.convert("out", "--tokenizer", "bytes", *files))
        self.assertEqual((tokens, documents), ([97, 98, 99], [[97], [98, 99]]))
        self.assertEqual(index["fingerprint"], "269183a246b435c0d088afadaadc0a2a1e6cbcf8004f5e27a35b9d54b1f87049")
        self.assertEqual(fingerprint_of_worker(",".join(files)), index["fingerprint"])

    def test_is_checked_by_worker(self):
        out = self.convert("out", "--tokenizer", "bytes", "--shard_tokens", "4", self.write("a.txt", "abcdefghij"))
        shard = out / "shard-00001.u16"
        good = shard.read_bytes()
        for damage in (good[:-2], good[:-2] + b"x\0"):
            shard.write_bytes(damage)
            self.assertIn(str(shard), fingerprint_of_worker(out / "index.json"))
        shard.unlink()
        self.assertIn(str(shard), fingerprint_of_worker(out / "index.json"))

    def test_gives_equal_bytes_of_formats(self):
        texts = [row["text"] for row in ROWS]
        tokenizer = json_tokenizer(self.folder / "tokenizer.json")
        inputs = {"jsonl": self.write_jsonl("a.jsonl", ROWS), "parquet": self.write_parquet("a.parquet", {"text": texts}, row_group_size=5),
                  "dataset": self.write_dataset("set", [{"text": texts[:10]}, {"text": texts[10:]}])}
        made = [contents(self.convert(name, "--tokenizer", tokenizer, path)) for name, path in inputs.items()]
        self.assertEqual(made[0], made[1])
        self.assertEqual(made[0], made[2])
        _, _, documents = read_back(self.folder / "jsonl")
        self.assertEqual(len(documents), len([text for text in texts if text]))

    # Documents beyond a unit and a piece, so that several processes have something to take.
    def test_ignores_number_of_processes(self):
        tokenizer = json_tokenizer(self.folder / "tokenizer.json")
        corpus = [self.write_jsonl("a.jsonl", [{"text": TEXTS[i % 4] * (1 << i)} for i in range(17)]), self.write("b.txt", TEXTS[0] * 40000)]
        made = [contents(self.convert(f"out{processes}", "--tokenizer", tokenizer, "--shard_tokens", "300000", "--processes", processes,
                                      *corpus)) for processes in (1, 3)]
        self.assertGreater(len(made[0]), 4)
        self.assertEqual(made[0], made[1])

    def test_killed_at_any_sync_it_ends_with_the_same_bytes(self):
        texts = [row["text"] for row in ROWS[:12]]
        inputs = [self.write_jsonl("a.jsonl", ROWS[:9]), self.write("b.txt", "some text\n" * 30),
                  self.write_parquet("c.parquet", {"text": texts}, row_group_size=4), self.write_dataset("set", [{"text": texts}])]
        arguments = ["--tokenizer", "bytes", "--shard_tokens", "400", "--processes", "1", *inputs]
        expected = contents(self.convert("expected", *arguments))
        out = self.folder / "out"
        kills = 0
        while True:  # each process comes further than the last, or the loop would not end
            done = subprocess.run([sys.executable, "-B", KILLED, str(8 + kills % 5), "--out", out, *arguments], capture_output=True, text=True)
            if done.returncode != -signal.SIGKILL:
                break
            kills += 1
            self.assertLess(kills, 300)
        self.assertIn(done.returncode, (0, 3), done.stderr)  # 3: killed when all was done but the last removal
        self.assertGreater(kills, 10)
        self.assertEqual(contents(out), expected)

    # Every place on its own, from the first sync to the last, each followed by one process that is left alone.
    def test_killed_once_at_each_sync_it_ends_with_the_same_bytes(self):
        arguments = ["--tokenizer", "bytes", "--shard_tokens", "150", "--processes", "1", self.write_jsonl("a.jsonl", ROWS[:5])]
        expected = contents(self.convert("expected", *arguments))
        place = 0
        while True:
            place += 1
            out = self.folder / f"out{place}"
            status = run_fork(["--out", out, *arguments], before=place)
            if status == 0:
                break
            self.assertEqual(status, -signal.SIGKILL)
            finished = (out / "index.json").exists()
            self.assertEqual(run_fork(["--out", out, *arguments]), 3 if finished else 0)
            self.assertEqual(contents(out), expected, f"killed before call {place}")
        self.assertGreater(place, 20)

    def test_leaves_no_process_behind(self):
        arguments = ["--tokenizer", json_tokenizer(self.folder / "tokenizer.json"), "--shard_tokens", "50000", "--processes", "2",
                     self.write("a.txt", TEXTS[3] * 150000)]
        expected = contents(self.convert("expected", *arguments))
        for sign, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
            out = self.folder / sign.name
            process = subprocess.Popen([sys.executable, "-B", "-m", "distro_data", "--out", out, *arguments], stderr=subprocess.PIPE)
            while not (out / "shard-00001.u16").exists():
                self.assertIsNone(process.poll(), "it ended before it was told to")
                time.sleep(0.005)  # for the file, which says that the processes of the pool are at work
            process.send_signal(sign)
            process.communicate(timeout=60)  # until every process that has the pipe has ended
            self.assertEqual(process.returncode, code)
            self.convert(sign.name, *arguments)
            self.assertEqual(contents(out), expected)

    def test_going_on_wants_the_same_inputs_and_flags(self):
        path = self.write_jsonl("a.jsonl", ROWS[:9])
        arguments = ["--shard_tokens", "400", "--processes", "1", path]
        out = self.folder / "out"
        subprocess.run([sys.executable, "-B", KILLED, "12", "--out", out, "--tokenizer", "bytes", *arguments])
        before = contents(out)
        self.assertIn("progress.json", before)
        for change, words in ((["--end_token", "none"], "end_token"), (["--shard_tokens", "500"], "shard_tokens"),
                              (["--shard_tokens", "600"], "shard_tokens: 400, and now 600"), (["--field", "body"], "field"),
                              (["--tokenizer", json_tokenizer(self.folder / "t.json")], "tokenizer")):
            said = self.run_data("--out", out, "--tokenizer", "bytes", *arguments, *change, code=2)
            self.assertIn(words, said)
        self.assertEqual(contents(out), before)

    def test_refuses_input_that_changes(self):
        class Growing(sources.TextFile):
            def pieces(self, place):
                yield from super().pieces(place)
                with open(self.path, "a") as file:
                    file.write("more")
        options = convert.Options(str(self.folder / "out"), [Growing(self.write("a.txt", "abc"))],
                                  encoders.open_tokenizer("bytes", "none", True), "text", shard_tokens=100, processes=1)
        with self.assertRaisesRegex(errors.InputError, "changed while it was read"):
            convert.convert(options)
        self.assertNotIn("index.json", contents(self.folder / "out"))

    def test_files_of_an_unfinished_conversion_that_are_damaged_are_named(self):
        arguments = ["--out", self.folder / "out", "--tokenizer", "bytes", "--shard_tokens", "400", "--processes", "1",
                     self.write_jsonl("a.jsonl", ROWS[:9])]
        subprocess.run([sys.executable, "-B", KILLED, "30", *arguments])
        kept = contents(self.folder / "out")
        for name in ("progress.json", "documents.u64"):
            path = self.folder / "out" / name
            path.write_bytes(kept[name][:3])
            self.assertIn(str(path), self.run_data(*arguments, code=2))
            path.write_bytes(kept[name])
        (self.folder / "out" / "documents.u64").unlink()
        self.assertIn("documents.u64: is missing", self.run_data(*arguments, code=2))

    def test_memory_does_not_grow_with_the_input(self):
        lines = (TEXTS[0] * 40).encode()
        inputs = []
        for name, count in (("small.txt", 10), ("large.txt", 60000)):  # 60 MB, in one document
            inputs.append(self.write(name, lines * count))
        peaks = []
        for i, path in enumerate(inputs):
            code = ("import resource, sys\nfrom distro_data.command_line import main\nassert main(sys.argv[1:]) == 0\n"
                    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)")
            done = subprocess.run([sys.executable, "-B", "-c", code, "--tokenizer", "bytes", "--processes", "1", "--out",
                                   self.folder / f"out{i}", path], capture_output=True, text=True, check=True)
            peaks.append(int(done.stdout.split()[-1]))
        self.assertLess(peaks[1] - peaks[0], 40 * 1024)  # KiB; the input and its tokens are 180 MB


if __name__ == "__main__":
    unittest.main()
