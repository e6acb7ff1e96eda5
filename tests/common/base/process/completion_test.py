"""What bash completes, with the scripts that the programs print.

usage: completion_test.py DISTROCTL DISTRO_WORKER DISTRO_AGGREGATOR
"""

import pathlib
import subprocess
import sys
import unittest

DISTROCTL = WORKER = AGGREGATOR = None

# Prints what the function proposes for the words, of which the last is being completed.
PROPOSE = """
set -u
function=$1; shift
source <("$0" completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
"$function"
printf '%s\\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"}
"""


def propose(*words, program=None, folder="/"):
    """For `PROGRAM WORDS`, the last of which may be empty."""
    program = program or DISTROCTL
    name = pathlib.Path(program).name
    done = subprocess.run(["bash", "--norc", "-c", PROPOSE, program, "_" + name.replace("-", "_"), name, *words],
                          capture_output=True, text=True, cwd=folder, check=True, timeout=60)
    return set(done.stdout.split())


class CompletionTest(unittest.TestCase):
    def test_commands(self):
        self.assertLessEqual({"run", "workers", "log", "check", "plan", "token", "help"}, propose(""))
        self.assertEqual(propose("wor"), {"workers"})
        self.assertEqual(propose("log", ""), {"ls", "show", "copy", "verify", "replay"})
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

    def test_flags_of_a_program_without_a_command(self):
        self.assertEqual(propose("--heart", program=AGGREGATOR), {"--heartbeat_interval"})
        self.assertEqual(propose("--insecure", "--data_", program=AGGREGATOR), {"--data_dir"})
        self.assertIn("usr", propose("--data_dir", "us", program=AGGREGATOR))

    def test_completes_commands_and_own_flags(self):
        self.assertEqual(propose("gen", program=WORKER), {"generate"})
        self.assertEqual(propose("--insecure", "gen", program=WORKER), set())
        self.assertEqual(propose("--sharding", "shard_g", program=WORKER), {"shard_grad_op"})
        self.assertEqual(propose("generate", "--te", program=WORKER), {"--temperature"})
        self.assertEqual(propose("generate", "--shard", program=WORKER), set())
        self.assertEqual(propose("--noreduce", program=WORKER), {"--noreduce_every_micro_batch"})

    def test_zsh_reads_the_same_function(self):
        scripts = [subprocess.run([DISTROCTL, "completion", shell], capture_output=True, text=True, check=True).stdout
                   for shell in ("bash", "zsh")]
        self.assertTrue(scripts[1].endswith(scripts[0]))
        self.assertIn("bashcompinit", scripts[1].splitlines()[0])


if __name__ == "__main__":
    DISTROCTL, WORKER, AGGREGATOR = sys.argv[1:4]
    del sys.argv[1:4]
    unittest.main()
