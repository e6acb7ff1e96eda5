"""A conversion that an input stopped: after the repair the same command continues, if what is converted is as it was."""

import json
import os
import pathlib
import unittest

from helpers import FolderTest, contents, json_tokenizer, run_data

ROWS = [{"text": f"row {i} of the text\n" * (i % 5)} for i in range(40)]  # every fifth is empty
HALF_A_PAIR = '{"text": "\\ud83d"}\n'


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


class RepairTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"

    shard_tokens = 300

    def convert(self, *inputs, out=None, code=0):
        done = run_data("--tokenizer", "bytes", "--processes", "1", "--shard_tokens", self.shard_tokens, "--out", out or self.out, *inputs)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def stop(self, *after, rows=ROWS[:30]):
        """A conversion that a row of bad.jsonl stopped, behind good.jsonl and before `after`."""
        self.good, self.bad = self.write_jsonl("good.jsonl", ROWS), self.write("bad.jsonl", lines(rows) + HALF_A_PAIR + lines(ROWS[30:]))
        said = self.convert(self.good, self.bad, *after, code=2)
        self.assertIn(f"{self.bad}:{len(rows) + 1}: ", said)
        self.assertIn("the same command continues", said)

    def assert_continues(self, *inputs):
        """...and ends with the bytes of a conversion that was never stopped."""
        self.assertIn("continuing at", self.convert(*inputs))
        self.convert(*inputs, out=self.folder / "expected")
        self.assertEqual(contents(self.out), contents(self.folder / "expected"))

    def assert_refused(self, *inputs, words):
        before = contents(self.out)
        said = self.convert(*inputs, code=2)
        for word in words:
            self.assertIn(word, said)
        self.assertEqual(contents(self.out), before)

    def test_takes_good_row(self):
        self.stop()
        self.write_jsonl("bad.jsonl", ROWS)
        self.assert_continues(self.good, self.bad)

    def test_continues_to_next_bad_row(self):
        self.stop(rows=ROWS[:10])
        self.write("bad.jsonl", lines(ROWS[:20]) + HALF_A_PAIR + lines(ROWS[20:]))
        self.assertIn(f"{self.bad}:21: ", self.convert(self.good, self.bad, code=2))
        self.write_jsonl("bad.jsonl", ROWS)
        self.assert_continues(self.good, self.bad)

    def test_lines_that_are_written_otherwise_are_the_same_texts(self):
        self.stop()
        self.write("bad.jsonl", "\n" + "".join(json.dumps({"id": 7, **row}) + "\r\n" for row in ROWS))
        self.assert_continues(self.good, self.bad)

    def test_continues_with_new_parquet_file(self):
        import pyarrow
        texts = [row["text"] for row in ROWS]
        wrong = pyarrow.array([text.encode() for text in texts[:30]] + [b"\xff"])
        path = self.write_parquet("a.parquet", {"text": wrong}, row_group_size=7)
        self.assertIn(f"{path}: row 30: ", self.convert(path, code=2))
        self.write_parquet("a.parquet", {"text": texts, "id": range(40)}, row_group_size=9, compression="zstd")
        self.assert_continues(path)

    def test_continues_with_end_of_text(self):
        self.shard_tokens = 300_000
        whole = "a line of some length\n" * 50000  # several pieces
        path = self.write("a.txt", whole.encode() + b"\xff")
        self.assertIn(f"{path}: byte {len(whole)}: ", self.convert(path, code=2))
        self.write("a.txt", whole + "the end")
        self.assert_continues(path)

    def test_files_behind_the_row_may_change_come_and_go(self):
        later = [self.write("later.txt", "x"), self.write("last.txt", "y")]
        self.stop(*later)
        self.write_jsonl("bad.jsonl", ROWS)
        self.write("later.txt", "another text")
        self.assert_continues(self.good, self.bad, self.write("new.txt", "z"), later[0])

    def test_copies_and_another_time_are_no_change(self):
        self.stop()
        os.utime(self.good, (1, 1))
        self.write_jsonl("bad.jsonl", ROWS)
        os.rename(self.bad, self.folder / "moved.jsonl")
        self.assert_continues(self.good, self.folder / "moved.jsonl")

    def test_refuses_change_of_converted(self):
        self.stop()
        self.write_jsonl("bad.jsonl", [{"text": "another"}, *ROWS[1:]])
        self.assert_refused(self.good, self.bad, words=(f"{self.bad}: another text", "it had ", " bytes of ", "another --out"))
        self.write_jsonl("bad.jsonl", ROWS[:20])
        self.assert_refused(self.good, self.bad, words=(f"{self.bad}: another text",))
        self.write_jsonl("bad.jsonl", ROWS)
        self.write_jsonl("good.jsonl", [*ROWS, {"text": "one more"}])
        self.assert_refused(self.good, self.bad, words=(f"{self.good}: another text",))
        self.write_jsonl("good.jsonl", ROWS)
        self.assert_refused(self.good, words=(f"{self.bad}: is converted, and is no input",))
        self.assert_continues(self.good, self.bad)

    # Its progress.json has size and time of all inputs among the settings, and nothing of what is in them.
    def test_continues_what_older_distro_data_began(self):
        self.stop()
        size, about = os.path.getsize(self.bad), os.stat(self.bad)
        path = self.out / "progress.json"
        state = json.loads(path.read_text())
        state["settings"]["formats"] = ["JsonLines", "JsonLines"]
        state["settings"]["inputs"] = [[record["path"], record["size"], record["time"]] for record in state.pop("inputs")]
        path.write_text(json.dumps(state))
        text = pathlib.Path(self.bad).read_text()
        repaired = text.replace(HALF_A_PAIR, '{"text": ""}\n')
        self.write("bad.jsonl", repaired)
        self.assert_refused(self.good, self.bad, words=(f"{self.bad}: another text",))
        self.write("bad.jsonl", repaired.ljust(size))
        os.utime(self.bad, ns=(about.st_atime_ns, about.st_mtime_ns))
        self.assert_continues(self.good, self.bad)

    def test_looks_at_inputs_first(self):
        good = self.write("a.txt", "a")
        for path, words in ((self.write_parquet("b.parquet", {"body": ["x"]}), 'no column "text"'),
                            (self.write_jsonl("b.jsonl", [{"body": "x"}]), 'no field "text"'),
                            (self.write_dataset("set", [{"text": [1]}]), "is of int64"),
                            (self.write("b.txt", "two\n".encode("utf-16")), "is UTF-16"),
                            (self.write("c.parquet", b"PAR1"), "cannot be read")):
            self.assertIn(words, self.convert(good, path, code=2))
            self.assertFalse(self.out.exists())

    def test_names_document_that_breaks_tokenizer(self):
        split = {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Isolated", "invert": False}
        grow = {"type": "Replace", "pattern": {"String": "z"}, "content": "z" * 4000}
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        tokenizer = json_tokenizer(self.folder / "tokenizer.json", pre_tokenizer={"type": "Sequence", "pretokenizers": [split, level]},
                                   normalizer={"type": "Sequence", "normalizers": [grow, grow]})
        for text, reason in (("x" * 60, "retry-limit"), ("z" * 60, "want of memory")):
            with self.subTest(reason):
                out = self.folder / reason
                arguments = ["--tokenizer", tokenizer, "--processes", "2", "--out", out, self.folder / "a.jsonl"]
                self.write_jsonl("a.jsonl", [*ROWS[:20], {"text": text}, *ROWS[20:]])
                said = self.run_data(*arguments, code=2)
                for words in (f"a.jsonl:21: the tokenizer {tokenizer} fails", reason, "the same command continues"):
                    self.assertIn(words, said)
                self.write_jsonl("a.jsonl", ROWS)
                self.run_data(*arguments)


if __name__ == "__main__":
    unittest.main()
