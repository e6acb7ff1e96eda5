"""Every `sh` block of docs/operations.md as it stands, against an aggregator and workers of this build.

usage: operations_page_test.py --aggregator FILE --worker FILE --distroctl FILE --archiver FILE
"""

import os
import pathlib
import re
import shutil
import subprocess
import time
import unittest

import processes

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "operations.md"
# Blocks of programs that go on until they are stopped.
LASTING = ("worker", "aggregator")


def blocks():
    """[(heading, kind, commands)] in the order of the page; kind is empty for commands that end."""
    text = PAGE.read_text()
    found = []
    for match in re.finditer(r"^```sh *(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        heading = re.findall(r"^## (.*)$", text[: match.start()], re.MULTILINE)[-1]
        found.append((heading, match[1], match[2]))
    return found


class OperationsPageTest(processes.ProcessTest):
    def setUp(self):
        super().setUp()
        space = self.workspace
        self.folder = space.folder / "operator"
        programs = self.folder / "bin"
        programs.mkdir(parents=True)
        for name, program in (("distroctl", space.binaries.distroctl), ("distro-worker", space.binaries.worker),
                              ("distro-aggregator", space.binaries.aggregator)):
            (programs / name).symlink_to(program)
        self.aggregator = space.create_run(start_workers=2, rounds=100000)
        (self.folder / "data").symlink_to(space.data_dir)
        (self.folder / "tokens").touch()
        self.workers = [space.start_worker(name, self.aggregator.grpc) for name in ("w1", "w2")]
        for worker in self.workers:
            self.aggregator.await_state(worker.name, "active")
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "CLIENT": "--insecure", "TMPDIR": str(space.folder),
                            "AGGREGATOR": self.aggregator.grpc, "HTTP": self.aggregator.http(),
                            "DATA_SOURCE": str(space.text), "CONFIG": str(space.folder / "config.json")}

    def bash(self, commands):
        return subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=processes.LIMIT_SECONDS)

    def run_until_it_works(self, kind, commands):
        """A program that lasts: started, seen at work, stopped."""
        out = (self.folder / f"{kind}.log").open("w+")
        process = subprocess.Popen([*processes.ENDS_WITH_US, "bash", "-c", "exec " + commands.strip()], cwd=self.folder, env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            self.await_work(kind, process)
        finally:
            process.terminate()
            process.wait(processes.LIMIT_SECONDS)
            out.close()

    def await_work(self, kind, process):
        ends = time.monotonic() + processes.LIMIT_SECONDS
        while True:
            log = (self.folder / f"{kind}.log").read_text()
            if kind == "worker" and self.workspace.states(self.aggregator).get("w3") in ("probation", "active", "late"):
                return
            if kind == "aggregator" and "listening" in log:
                return
            self.assertIsNone(process.poll(), log)
            self.assertLess(time.monotonic(), ends, log)
            time.sleep(0.1)

    @unittest.skipUnless(shutil.which("rsync"), "rsync is not installed")
    def test_works(self):
        kinds = set()
        for heading, kind, commands in blocks():
            with self.subTest(heading=heading, commands=commands):
                kinds.add(kind)
                if kind in LASTING:
                    self.run_until_it_works(kind, commands)
                    continue
                done = self.bash(commands)
                # A link may be slower than rounds of a toy model are: that is an answer, too.
                expected = (0, 9) if "bench-link" in commands else (0,)
                self.assertIn(done.returncode, expected, done.stdout + done.stderr)
        self.assertEqual(kinds, {"", *LASTING})


class PageTest(unittest.TestCase):
    def test_answers_what_operators_ask(self):
        page = PAGE.read_text()
        for heading in ("Adding a machine", "Seeing one fail", "Resuming", "Upgrading", "Backup and restore",
                        "Sizing disk and traffic", "Load balancers and idle timeouts", "Rotating tokens", "Adding users",
                        "Several runs at once"):
            self.assertIn(f"\n## {heading}\n", page)


if __name__ == "__main__":
    processes.main()
