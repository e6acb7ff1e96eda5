"""All programs explain themselves and refuse in the same way.

usage: programs_test.py PROGRAM...
"""

import pathlib
import re
import subprocess
import sys
import unittest

PROGRAMS = []


def run(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)


class ProgramsTest(unittest.TestCase):
    def each(self):
        for program in PROGRAMS:
            name = pathlib.Path(program).name
            with self.subTest(name):
                yield program, name

    def refused(self, name, done, part):
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertEqual("", done.stdout)
        self.assertRegex(done.stderr, f"^{re.escape(name)}: [^\n]*{part}[^\n]*\n$")

    def flags(self, program):
        """The flags with a number or a duration that its help has, and the command that they are of."""
        for command in ([], ["workers"]):
            for flag in re.findall(r"^  --(\w+) (?:N|10s)$", run(program, *command, "--help").stdout, re.MULTILINE):
                yield command, flag

    def test_help(self):
        for program, name in self.each():
            done = run(program, "--help")
            self.assertEqual(0, done.returncode)
            self.assertEqual("", done.stderr)
            self.assertTrue(done.stdout.startswith(f"{name}: "), done.stdout[:100])
            self.assertIn("\nExit codes:\n    0  ", done.stdout)
            self.assertIn("\n  completion SHELL ", done.stdout)
            for words in (["-h"], ["help"], ["--no_such_flag", "--help"], ["--help", "--no_such_flag"]):
                self.assertEqual(done.stdout, run(program, *words).stdout, words)

    def test_version(self):
        versions = set()
        for program, name in self.each():
            done = run(program, "--version")
            self.assertEqual(0, done.returncode)
            self.assertRegex(done.stdout, f"^{re.escape(name)} [0-9.]+\n$")
            versions.add(done.stdout.split()[1])
        self.assertEqual(1, len(versions))

    def test_a_flag_that_there_is_not(self):
        for program, name in self.each():
            for word in ("--no_such_flag", "--no_such_flag=1", "--helpfull", "-v"):
                self.refused(name, run(program, word), f"{word.split('=')[0]}: is no flag")

    def test_a_value_of_another_kind(self):
        for program, name in self.each():
            found = list(self.flags(program))
            self.assertTrue(found)
            for command, flag in found:
                arguments = ["h:1"] if command else []
                self.refused(name, run(program, *command, *arguments, f"--{flag}", "many"), f"--{flag}: 'many' is not ")

    def test_a_value_that_is_missing(self):
        for program, name in self.each():
            command, flag = next(self.flags(program))
            self.refused(name, run(program, *command, f"--{flag}"), f"--{flag}: 1 required (N|10s) missing")

    def test_a_command_that_there_is_not(self):
        for program, name in self.each():
            self.refused(name, run(program, "dance"), "unknown command 'dance'")

    def test_completion(self):
        for program, name in self.each():
            done = run(program, "completion", "bash")
            self.assertEqual(0, done.returncode)
            self.assertTrue(done.stdout.endswith(f" {name}\n"), done.stdout[-100:])
            self.refused(name, run(program, "completion", "fish"), "SHELL")


if __name__ == "__main__":
    PROGRAMS = [argument for argument in sys.argv[1:] if argument.startswith("/")]
    sys.argv[1:] = sys.argv[1 + len(PROGRAMS):]
    unittest.main()
