"""docs/quickstart.md, "Over the internet", as it stands: an aggregator with TLS and tokens, and a second machine that joins it.

Only what cannot be had in a test is replaced: the programs' folder, the folder of the run, the aggregator's name and ports.
tests/deploy/operate_path_test.py follows all of it, where it may make machines of its own.

usage: quickstart_test.py --aggregator FILE --worker FILE --distroctl FILE --archiver FILE
"""

import shutil

import processes
import quickstart
from quickstart import ROOT


class QuickstartTest(quickstart.Typing):
    def setUp(self):
        super().setUp()
        self.folder = self.workspace.folder / "srv"
        self.replaced = {"$PWD/build/dev/bin": str(self.programs), "/srv/distro": str(self.folder)}

    def test_works(self):
        prepare, look = (commands for kind, commands in quickstart.blocks() if not kind)
        (aggregator_command,) = quickstart.commands("aggregator")
        (worker_command,) = quickstart.commands("worker")
        self.replaced["aggregator.example"] = "localhost"
        self.bash(prepare, ROOT)
        del self.replaced["aggregator.example"]
        aggregator, port = self.start_aggregator(aggregator_command, self.folder)
        self.replaced["aggregator.example:7700"] = f"localhost:{port}"
        self.replaced["--invite w2.invite --data"] = f"--invite w2.invite --aggregator localhost:{port} --data"
        shutil.copy(self.workspace.text, self.folder / "text.txt")
        # The exit code of bench-link says whether this link would hold the round up: a loaded machine's may.
        self.assertRegex(self.bash(look.replace("w2.invite ", "w2.invite || test $? = 5 -o $? = 9 ", 1), self.folder).stdout, r"\d")
        worker = self.start("worker", worker_command, self.folder, processes.Worker)
        processes.until(lambda: self.assertTrue(worker.alive(), worker.log()) or
                        any(aggregator.metric("distro_aggregator_worker_state", worker="w2", state=state) == 1
                            for state in ("synced", "active")), "w2 has joined")


if __name__ == "__main__":
    processes.main()
