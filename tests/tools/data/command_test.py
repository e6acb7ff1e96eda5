"""distro-data as a person meets it: what it explains, refuses and ends with."""

import fcntl
import io
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

from distro_data.progress import Progress
from distro_data.shown import shown
from helpers import FolderTest, contents, json_tokenizer, run_data


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

    def start(self, *arguments, **streams):
        return subprocess.Popen([sys.executable, "-B", "-m", "distro_data", *map(str, arguments)], **streams)

    def test_survives_end_of_reader(self):
        read, write = os.pipe()
        os.close(read)
        out = self.folder / "out"
        for arguments in (["--help"], ["--tokenizer", "bytes", "--out", out, self.write("a.txt", "abc")]):
            self.assertEqual(self.start(*arguments, stdout=write, stderr=write).wait(60), 0, arguments)
        os.close(write)
        self.assertTrue((out / "index.json").exists())

    def test_closed_streams_are_no_files_of_the_conversion(self):
        command = ["bash", "-c", 'exec "$@" <&- >&- 2>&-', "-", sys.executable, "-B", "-m", "distro_data"]
        done = [subprocess.run([*command, "--tokenizer", "bytes", "--out", self.folder / name, self.write("a.txt", "abc")], timeout=60).returncode
                for name in ("one", "two")]
        self.assertEqual(done, [0, 0])
        self.assertEqual(contents(self.folder / "one"), contents(self.folder / "two"))

    def test_results_that_cannot_be_written_are_an_error(self):
        with open("/dev/full", "w") as full:
            child = self.start("--help", stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(child.communicate(timeout=60)[1], "distro-data: standard output: No space left on device\n")
        self.assertEqual(child.returncode, 1)

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

    def test_ends_with_3_on_finished_folder(self):
        out = self.folder / "out"
        arguments = ["--tokenizer", "bytes", "--out", out, self.write("a.txt", "abc")]
        self.run_data(*arguments)
        before = contents(out)
        self.assertIn("is finished", self.run_data(*arguments, code=3))
        self.assertEqual(contents(out), before)

    def test_leaves_foreign_folder_alone(self):
        self.write("out/thesis.tex", "mine")
        said = self.run_data("--tokenizer", "bytes", "--out", self.folder / "out", self.write("a.txt", "abc"), code=2)
        self.assertIn("thesis.tex", said)
        self.assertEqual(contents(self.folder / "out"), {"thesis.tex": b"mine"})

    def test_refuses_file(self):
        text = self.write("a.txt", "abc")
        for out in (text, f"{text}/out"):
            self.assertIn("give a folder", self.run_data("--tokenizer", "bytes", "--out", out, text, code=2))

    def test_leaves_folder_in_use_alone(self):
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
                         r"\u202ea\x1b[2J\u009b\u2028\n\u200b\ufeff")
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

    def test_continues_after_full_disk(self):
        out = self.folder / "out"
        arguments = ["--tokenizer", "bytes", "--out", out, self.write("a.txt", "abc" * 10000)]
        full = run_data(*arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY)))
        self.assertEqual(full.returncode, 1, full.stderr)
        self.assertIn("File too large", full.stderr)
        self.assertIn("the same command continues", full.stderr)
        self.assertFalse((out / "index.json").exists())
        self.assertIn("30000 tokens", self.run_data(*arguments))


    def test_refuses_unwritable_out_at_once(self):
        for out in ("/proc/self/out", "/sys/out"):
            said = self.run_data("--tokenizer", "bytes", "--out", out, self.write("a.txt", "abc"), code=2)
            self.assertIn(f"--out: {out}: ", said)

    def test_names_of_others_do_not_reach_the_terminal_as_they_are(self):
        path = self.write_jsonl("a\x1b[2J\u202eb.jsonl", [{"c\nd": 1}])
        said = self.run_data("--tokenizer", "bytes", "--out", self.folder / "out", path, code=2)
        self.assertIn('a\\x1b[2J\\u202eb.jsonl:1: has no field "text", it has "c\\nd"', said)
        self.assertEqual(said.count("\n"), 1)

    def start_with_processes(self):
        """A conversion, and the processes that encode for it, which are at work."""
        path = self.write("a.txt", "some words of text\n" * 600_000)
        arguments = ["--tokenizer", json_tokenizer(self.folder / "tokenizer.json"), "--processes", "2", "--shard_tokens", "100000", "--out",
                     self.folder / "out", path]
        process = subprocess.Popen([sys.executable, "-B", "-m", "distro_data", *map(str, arguments)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while not (self.folder / "out" / "shard-00001.u16").exists():
            self.assertIsNone(process.poll(), "it ended before it was told to")
            time.sleep(0.005)  # for the file, which says that the processes of the pool are at work
        children = [child for path in pathlib.Path(f"/proc/{process.pid}/task").glob("*/children") for child in path.read_text().split()]
        return process, [int(child) for child in children if b"spawn_main" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes()]

    def test_signals_end_it_with_their_codes(self):
        for sign, code in ((signal.SIGHUP, 129), (signal.SIGTERM, 143)):
            process, _ = self.start_with_processes()
            process.send_signal(sign)
            _, said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, code, said)
            self.assertIn(f"stopped by {sign.name}; the same command continues", said)
            shutil.rmtree(self.folder / "out")

    def test_names_killed_process(self):
        process, pool = self.start_with_processes()
        os.kill(pool[0], signal.SIGKILL)
        _, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("a process that encodes was killed", said)
        self.assertIn("the same command continues", said)


if __name__ == "__main__":
    unittest.main()
