"""distro-data as a person meets it: what it explains, refuses and ends with."""

import fcntl
import io
import os
import resource
import unittest

from distro_data.progress import Progress
from distro_data.shown import shown
from helpers import FolderTest, contents, run_data


class ProgressTest(unittest.TestCase):
    def test_without_a_terminal_it_says_a_line_every_half_minute(self):
        out, seconds = io.StringIO(), [0]
        progress = Progress("encoding", 1000_000, done_bytes=100_000, stream=out, clock=lambda: seconds[0])
        for seconds[0] in range(0, 61, 10):
            progress.update(100_000 + 10_000 * seconds[0], tokens=2_500_000)
        self.assertEqual(out.getvalue(), "encoding 40.0%  400.0 kB of 1.0 MB  10.0 kB/s  2.5 M tokens  0:01:00 left\n"
                                         "encoding 70.0%  700.0 kB of 1.0 MB  10.0 kB/s  2.5 M tokens  0:00:30 left\n")


class CommandTest(FolderTest):
    def test_help_teaches(self):
        text = self.run_data("--help")
        for words in ("--tokenizer", ".parquet", "save_to_disk", "index.json", "kill -9", "exit codes"):
            self.assertIn(words, text)

    def test_wrong_usage_is_2_and_changes_nothing(self):
        text = self.write("a.txt", "abc")
        out = self.folder / "out"
        for arguments in ([], ["--tokenizer", "bytes", text], ["--tokenizer", "bytes", "--out", out],
                          ["--tokenizer", "bytes", "--out", out, "absent.txt"],
                          ["--tokenizer", "absent.json", "--out", out, text],
                          ["--tokenizer", "bytes", "--out", out, "--shard_tokens", "0", text],
                          ["--tokenizer", "bytes", "--out", out, "--processes", "-1", text]):
            self.run_data(*arguments, code=2)
            self.assertFalse(out.exists())

    def test_a_finished_folder_is_3_and_stays(self):
        out = self.folder / "out"
        arguments = ["--tokenizer", "bytes", "--out", out, self.write("a.txt", "abc")]
        self.run_data(*arguments)
        before = contents(out)
        self.assertIn("is finished", self.run_data(*arguments, code=3))
        self.assertEqual(contents(out), before)

    def test_a_folder_of_somebody_else_is_left_alone(self):
        self.write("out/thesis.tex", "mine")
        said = self.run_data("--tokenizer", "bytes", "--out", self.folder / "out", self.write("a.txt", "abc"), code=2)
        self.assertIn("thesis.tex", said)
        self.assertEqual(contents(self.folder / "out"), {"thesis.tex": b"mine"})

    def test_a_file_is_no_folder(self):
        text = self.write("a.txt", "abc")
        for out in (text, f"{text}/out"):
            self.assertIn("give a folder", self.run_data("--tokenizer", "bytes", "--out", out, text, code=2))

    def test_a_folder_that_another_process_works_in_is_left_alone(self):
        out = self.folder / "out"
        out.mkdir()
        lock = os.open(out, os.O_RDONLY)
        self.addCleanup(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = self.run_data("--tokenizer", "bytes", "--out", out, self.write("a.txt", "abc"), code=2)
        self.assertIn("another distro-data works in", said)
        self.assertEqual(contents(out), {})

    def test_text_of_others_is_shown_for_what_it_is(self):
        self.assertEqual(shown("\u202ea\x1b[2J\u009b\u2028\n\u200b\ufeff"),
                         r"\u202ea\u001b[2J\u009b\u2028\u000a\u200b\ufeff")
        self.assertEqual(shown("Größe 模型"), "Größe 模型")
        self.assertEqual(shown("a" * 5000), "a" * 4000 + "... (5000 characters)")
        columns = self.write_parquet("a.parquet", {"\u202etxet\n": ["abc"]})
        for arguments in (["\u202egnp.exe\n"], [columns]):
            said = self.run_data(*arguments, "--tokenizer", "bytes", "--out", self.folder / "out", code=2)
            self.assertIn(r"\u202e", said)
            self.assertEqual(said.count("\n"), 1, said)
            self.assertNotIn("\u202e", said)

    def test_inputs_without_text_are_refused(self):
        said = self.run_data("--tokenizer", "bytes", "--out", self.folder / "out", self.write_jsonl("a.jsonl", [{"text": ""}]), code=2)
        self.assertIn("no text", said)
        self.assertFalse((self.folder / "out/index.json").exists())

    def test_a_disk_without_room_is_1_and_the_same_command_goes_on(self):
        out = self.folder / "out"
        arguments = ["--tokenizer", "bytes", "--out", out, self.write("a.txt", "abc" * 10000)]
        full = run_data(*arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY)))
        self.assertEqual(full.returncode, 1, full.stderr)
        self.assertIn("File too large", full.stderr)
        self.assertIn("the same command continues", full.stderr)
        self.assertFalse((out / "index.json").exists())
        self.assertIn("30000 tokens", self.run_data(*arguments))


if __name__ == "__main__":
    unittest.main()
