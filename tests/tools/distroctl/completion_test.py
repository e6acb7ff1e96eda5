"""What bash completes, with the script that distroctl prints.

usage: completion_test.py DISTROCTL
"""

import subprocess
import sys
import unittest

DISTROCTL = None

# Prints what the function proposes for the words, of which the last is being completed.
PROPOSE = """
set -u
source <("$0" completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_distroctl
printf '%s\\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"}
"""


def propose(*words, folder="/"):
    """For `distroctl WORDS`, the last of which may be empty."""
    done = subprocess.run(["bash", "--norc", "-c", PROPOSE, DISTROCTL, "distroctl", *words], capture_output=True,
                          text=True, cwd=folder, check=True, timeout=60)
    return set(done.stdout.split())


class CompletionTest(unittest.TestCase):
    def test_commands(self):
        self.assertLessEqual({"run", "workers", "log", "check", "plan", "token", "help"}, propose(""))
        self.assertEqual(propose("wor"), {"workers"})
        self.assertEqual(propose("log", ""), {"ls", "show", "verify", "replay"})
        self.assertEqual(propose("run", "p"), {"pause"})
        self.assertEqual(propose("help", "adm"), {"admit"})

    def test_flags_of_the_command_alone(self):
        self.assertLessEqual({"--watch", "--ca", "--insecure", "--output"}, propose("workers", "h:1", "--"))
        self.assertEqual(propose("log", "ls", "--f"), {"--from"})
        self.assertEqual(propose("log", "verify", "--f"), set())

    def test_values(self):
        self.assertEqual(propose("token", "new", "w1", "--role", "a"), {"archiver", "admin"})
        self.assertEqual(propose("workers", "h:1", "--output", ""), {"text", "json"})
        self.assertIn("usr", propose("log", "ls", "--data_dir", "us"))
        self.assertEqual(propose("workers", "h:1", "--interval", ""), set())

    def test_zsh_reads_the_same_function(self):
        scripts = [subprocess.run([DISTROCTL, "completion", shell], capture_output=True, text=True, check=True).stdout
                   for shell in ("bash", "zsh")]
        self.assertTrue(scripts[1].endswith(scripts[0]))
        self.assertIn("bashcompinit", scripts[1].splitlines()[0])


if __name__ == "__main__":
    DISTROCTL = sys.argv.pop(1)
    unittest.main()
