"""docs/quickstart.md, "Over the internet", as it stands: an aggregator with TLS and tokens, and a second machine that joins it.

Only what cannot be had in a test is replaced: the programs' folder, the folder of the run, the aggregator's name and ports.
tests/deploy/operate_path_test.py follows all of it, where it may make machines of its own.

usage: quickstart_test.py --aggregator FILE --worker FILE --distroctl FILE --archiver FILE
"""

import os
import shutil
import subprocess

import processes
import quickstart
from quickstart import ROOT


class QuickstartTest(processes.ProcessTest):
    def setUp(self):
        super().setUp()
        space = self.workspace
        self.folder = space.folder / "srv"
        programs = space.folder / "bin"
        programs.mkdir()
        for name, program in (("distroctl", space.binaries.distroctl), ("distro-worker", space.binaries.worker),
                              ("distro-aggregator", space.binaries.aggregator)):
            (programs / name).symlink_to(program)
        self.replaced = {"$PWD/build/dev/bin": str(programs), "/srv/distro": str(self.folder)}
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(space.folder)}

    def adapted(self, commands):
        for text, instead in self.replaced.items():
            commands = commands.replace(text, instead)
        return commands

    def bash(self, commands, folder):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.adapted(commands)], cwd=folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=processes.LIMIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def start(self, kind, commands, make):
        script = f"cd {self.folder}; checkout={ROOT}; exec {self.adapted(commands).strip()}"
        self.workspace.processes.append(make(kind, ["env", f"PATH={self.environment['PATH']}", "bash", "-c", script]))
        return self.workspace.processes[-1]

    def start_aggregator(self, commands):
        folder = self.workspace.folder
        port_file = folder / "quickstart.ports"
        self.replaced["0.0.0.0:7700"] = f"127.0.0.1:0 --http 127.0.0.1:0 --port_file {port_file}"
        aggregator = self.start("aggregator", commands,
                                lambda name, command: processes.Aggregator(name, command, folder, port_file)).await_ports()
        port = aggregator.grpc.rpartition(":")[2]
        self.replaced["aggregator.example:7700"] = f"localhost:{port}"
        self.replaced["--invite w2.invite --data"] = f"--invite w2.invite --aggregator localhost:{port} --data"
        return aggregator

    def test_its_commands_work(self):
        prepare, look = (commands for kind, commands in quickstart.blocks() if not kind)
        (aggregator_command,) = quickstart.commands("aggregator")
        (worker_command,) = quickstart.commands("worker")
        self.replaced["aggregator.example"] = "localhost"
        self.bash(prepare, ROOT)
        del self.replaced["aggregator.example"]
        aggregator = self.start_aggregator(aggregator_command)
        shutil.copy(self.workspace.text, self.folder / "text.txt")
        # The exit code of bench-link says whether this link would hold the round up: a loaded machine's may.
        self.assertRegex(self.bash(look.replace("w2.invite ", "w2.invite || test $? = 5 -o $? = 9 ", 1), self.folder), r"\d")
        worker = self.start("worker", worker_command, lambda name, command: processes.Worker(name, command, self.workspace.folder))
        processes.until(lambda: self.assertTrue(worker.alive(), worker.log()) or
                        any(aggregator.metric("distro_aggregator_worker_state", worker="w2", state=state) == 1
                            for state in ("synced", "active")), "w2 has joined")


if __name__ == "__main__":
    processes.main()
