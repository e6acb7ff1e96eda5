"""The commands of docs/quickstart.md, "Over the internet", and of other pages."""
import os
import pathlib
import re
import subprocess

import processes

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks():
    """[(kind, commands)] in their order; kind is empty for commands that end, else it names what they start."""
    return blocks_of(re.search(r"^## Over the internet\n(.*?)^## ", (ROOT / "docs" / "quickstart.md").read_text(), re.MULTILINE | re.DOTALL)[1])


def blocks_of(text):
    """The same of any text."""
    return re.findall(r"^```sh *(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(kind):
    """Those of a kind, in their order."""
    return [text for one, text in blocks() if one == kind]


class Typing(processes.ProcessTest):
    """Types a page's commands, with the programs of the build first on the PATH."""

    def setUp(self):
        super().setUp()
        space = self.workspace
        self.programs = space.folder / "bin"
        self.programs.mkdir()
        for name, program in (("distroctl", space.binaries.distroctl), ("distro-worker", space.binaries.worker),
                              ("distro-aggregator", space.binaries.aggregator)):
            (self.programs / name).symlink_to(program)
        self.replaced = {}  # what a test cannot have, and what is typed in its place
        self.environment = {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}", "TMPDIR": str(space.folder)}

    def adapted(self, commands):
        for text, instead in self.replaced.items():
            commands = commands.replace(text, instead)
        return commands

    def bash(self, commands, folder):
        """Commands that end, and end well: what they printed."""
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.adapted(commands)], cwd=folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=processes.LIMIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def start(self, name, commands, folder, make):
        """The process of one command."""
        script = f"cd {folder}; checkout={ROOT}; exec {self.adapted(commands).strip()}"
        self.workspace.processes.append(make(name, ["env", f"PATH={self.environment['PATH']}", "bash", "-c", script], self.workspace.folder))
        return self.workspace.processes[-1]

    def start_aggregator(self, commands, folder):
        """That of a page, on ports of its own, once it listens; and its port for the workers."""
        ports = self.workspace.folder / "typed.ports"
        self.replaced["0.0.0.0:7700"] = f"127.0.0.1:0 --http 127.0.0.1:0 --port_file {ports}"
        aggregator = self.start("aggregator", commands, folder, lambda *what: processes.Aggregator(*what, ports)).await_ports()
        return aggregator, aggregator.grpc.rpartition(":")[2]
