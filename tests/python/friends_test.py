"""docs/friends.md as it stands: a rehearsal on one machine, then three programs with an invite each and an aggregator with TLS.

Only what a test cannot have is replaced: the aggregator's name and port, and most of the rounds.
"""
import os
import shutil
import subprocess

from examples import EXAMPLES, PYTHON, ExampleTest  # which says where the next ones are
import processes
from quickstart import ROOT, blocks_of

PROGRAMS = {"python": f"exec {PYTHON} -B", "distro-train": f"exec {PYTHON} -B -m distro_train"}


class FriendsTest(ExampleTest):
    def setUp(self):
        super().setUp()
        space = self.workspace
        programs = space.folder / "bin"
        programs.mkdir()
        for name, program in (("distroctl", space.binaries.distroctl), ("distro-aggregator", space.binaries.aggregator)):
            (programs / name).symlink_to(program)
        for name, command in PROGRAMS.items():  # a link to a Python would not find its packages
            (programs / name).write_text(f'#!/bin/sh\n{command} "$@"\n')
            (programs / name).chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(space.folder)}
        self.host = self.machine("host")
        self.replaced = {'"rounds": 400': '"rounds": 10', "--rounds 20": "--rounds 3", "--host aggregator.example": "--host localhost"}

    def machine(self, name):
        """A folder with what each friend is given."""
        folder = self.workspace.folder / name
        folder.mkdir()
        shutil.copy(self.workspace.text, folder / "text.txt")
        shutil.copy(EXAMPLES / "nanogpt.py", folder)
        return folder

    def adapted(self, commands):
        for text, instead in self.replaced.items():
            commands = commands.replace(text, instead)
        return commands

    def run_to_the_end(self, commands):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.adapted(commands)], cwd=self.host, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=processes.LIMIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr

    def start(self, name, folder, commands, make):
        command = ["env", f"PATH={self.environment['PATH']}", "bash", "-c", f"cd {folder}; exec {self.adapted(commands).strip()}"]
        self.workspace.processes.append(make(name, command, self.workspace.folder))
        return self.workspace.processes[-1]

    def test_its_commands_work(self):
        (_, rehearse), (_, prepare), (_, serve), (_, train) = blocks_of((ROOT / "docs" / "friends.md").read_text())
        self.assertIn("every worker has the parameters", self.run_to_the_end(rehearse))
        self.run_to_the_end(prepare)
        ports = self.workspace.folder / "friends.ports"
        self.replaced["0.0.0.0:7700"] = f"127.0.0.1:0 --http 127.0.0.1:0 --port_file {ports}"
        aggregator = self.start("aggregator", self.host, serve, lambda *what: processes.Aggregator(*what, ports)).await_ports()
        port = aggregator.grpc.rpartition(":")[2]
        friends = []
        for name in ("w1", "w2", "w3"):
            home = self.machine(name)
            shutil.copytree(self.host / "initial", home / "initial")
            shutil.copy(self.host / f"{name}.invite", home)
            self.replaced["--invite w2.invite"] = f"--invite {name}.invite --aggregator localhost:{port}"
            friends.append(self.start(name, home, train, processes.Process))
        states = set()
        for friend in friends:
            self.assertEqual(friend.exit_code(), 0, friend.log())
            states.add(friend.out_path.read_text().splitlines()[-1])
            self.assertIn("round 10/10", friend.log())
        self.assertEqual(len(states), 1, states)
        models = {(self.workspace.folder / name / "trained" / "model.safetensors").read_bytes() for name in ("w1", "w2", "w3")}
        self.assertEqual(len(models), 1)


if __name__ == "__main__":
    processes.main()
