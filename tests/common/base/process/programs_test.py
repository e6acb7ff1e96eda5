"""All programs explain themselves and refuse in the same way.

usage: programs_test.py PROGRAM...
"""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
PAGES = {"distro-aggregator": "aggregator.md", "distroctl": "tools.md"}
PROGRAMS = []


def run(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)


def with_numbers(program, name):
    """A command, and its flags that take a number or a duration, as its help has them."""
    command = ["workers"] if name == "distroctl" else []  # it does nothing without one
    return command, re.findall(r"^  --(\w+) (?:N|10s)$", run(program, *command, "--help").stdout, re.MULTILINE)


class ProgramsTest(unittest.TestCase):
    def for_each(self, check):
        for program in PROGRAMS:
            name = pathlib.Path(program).name
            with self.subTest(name):
                check(program, name)

    def refused(self, name, done, part):
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertEqual("", done.stdout)
        self.assertRegex(done.stderr, f"^{re.escape(name)}: [^\n]*{part}[^\n]*\n$")

    def test_help(self):
        def check(program, name):
            done = run(program, "--help")
            self.assertEqual(0, done.returncode)
            self.assertEqual("", done.stderr)
            self.assertTrue(done.stdout.startswith(f"{name}: "), done.stdout[:100])
            self.assertIn("\nExit codes:\n    0  ", done.stdout)
            self.assertIn("\n  completion SHELL ", done.stdout)
            for words in (["help"], ["--no_such_flag", "--help"]):
                self.assertEqual(done.stdout, run(program, *words).stdout, words)
        self.for_each(check)

    def test_prints_flags_and_exit_codes_of_pages(self):
        programs = {pathlib.Path(program).name: program for program in PROGRAMS}
        for name, page in PAGES.items():
            done = run(ROOT / "scripts" / "generate_flags", programs[name], ROOT / "docs" / page, "--check")
            self.assertEqual((0, ""), (done.returncode, done.stderr))

    def test_version(self):
        versions = set()

        def check(program, name):
            done = run(program, "--version")
            self.assertEqual(0, done.returncode)
            self.assertRegex(done.stdout, f"^{re.escape(name)} [0-9.]+\n$")
            versions.add(done.stdout.split()[1])
        self.for_each(check)
        self.assertEqual(1, len(versions))

    def test_refuses_unknown_flag(self):
        def check(program, name):
            for word in ("--no_such_flag=1", "--helpfull", "-v"):
                self.refused(name, run(program, word), f"{word.split('=')[0]}: is no flag")
        self.for_each(check)

    def test_refuses_wrong_or_no_value(self):
        def check(program, name):
            command, flags = with_numbers(program, name)
            self.assertTrue(flags)
            for flag in flags[:3]:
                done = run(program, *command, *(["h:1"] if command else []), f"--{flag}", "many")
                self.refused(name, done, f"--{flag}: 'many' is not ")
            self.refused(name, run(program, *command, f"--{flags[0]}"), f"--{flags[0]}: 1 required (N|10s) missing")
        self.for_each(check)

    def test_refuses_unknown_command(self):
        self.for_each(lambda program, name: self.refused(name, run(program, "dance"), "unknown command 'dance'"))

    def test_completion(self):
        def check(program, name):
            done = run(program, "completion", "bash")
            self.assertEqual(0, done.returncode)
            self.assertTrue(done.stdout.endswith(f" {name}\n"), done.stdout[-100:])
            self.refused(name, run(program, "completion", "fish"), "SHELL")
        self.for_each(check)


if __name__ == "__main__":
    PROGRAMS = [argument for argument in sys.argv[1:] if argument.startswith("/")]
    sys.argv[1:] = sys.argv[1 + len(PROGRAMS):]
    unittest.main()
