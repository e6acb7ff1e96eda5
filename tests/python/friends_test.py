"""docs/friends.md as it stands: a rehearsal on one machine, then three programs with an invite each and an aggregator with TLS.
The first test runs everywhere: it replaces the aggregator's name and port, and most of the rounds. In the second each friend has
a network, names and a /srv of its own, and the model is one with everything that a module may have."""
import contextlib
import os
import re
import shutil
import sys

from examples import EXAMPLES, HERE, PYTHON  # which says where the next ones are
import processes
from quickstart import ROOT, Typing, blocks_of

sys.path.insert(0, str(ROOT / "tests" / "deploy"))
import machines  # noqa: E402
import shaped_links  # noqa: E402

PROGRAMS = {"python": f"exec {PYTHON} -B", "distro-train": f"exec {PYTHON} -B -m distro_train"}


class PageTest(Typing):
    """`rehearse`, `prepare`, `serve`, `train`: the page's commands."""

    def setUp(self):
        super().setUp()
        (_, self.rehearse), (_, self.prepare), (_, self.serve), (_, self.train) = blocks_of((ROOT / "docs" / "friends.md").read_text())
        for name, command in PROGRAMS.items():  # a link to a Python would not find its packages
            (self.programs / name).write_text(f'#!/bin/sh\n{command} "$@"\n')
            (self.programs / name).chmod(0o755)


class LoopbackTest(PageTest):
    def setUp(self):
        super().setUp()
        self.host = self.machine("host")
        self.replaced = {'"rounds": 160': '"rounds": 10', "--rounds 20": "--rounds 3", "--host aggregator.example": "--host localhost"}

    def machine(self, name):
        """A folder with what each friend is given."""
        folder = self.workspace.folder / name
        folder.mkdir()
        shutil.copy(self.workspace.text, folder / "text.txt")
        shutil.copy(EXAMPLES / "nanogpt.py", folder)
        return folder

    def test_works(self):
        self.assertIn("every worker has the parameters", self.bash(self.rehearse, self.host).stderr)
        self.bash(self.prepare, self.host)
        _, port = self.start_aggregator(self.serve, self.host)
        friends = []
        for name in ("w1", "w2", "w3"):
            home = self.machine(name)
            shutil.copytree(self.host / "initial", home / "initial")
            shutil.copy(self.host / f"{name}.invite", home)
            self.replaced["--invite w2.invite"] = f"--invite {name}.invite --aggregator localhost:{port}"
            friends.append(self.start(name, self.train, home, processes.Process))
        states = set()
        for friend in friends:
            self.assertEqual(friend.exit_code(), 0, friend.log())
            states.add(friend.out_path.read_text().splitlines()[-1])
            self.assertIn("round 10/10", friend.log())
        self.assertEqual(len(states), 1, states)
        models = {(self.workspace.folder / name / "trained" / "model.safetensors").read_bytes() for name in ("w1", "w2", "w3")}
        self.assertEqual(len(models), 1)


class ThreeMachinesTest(PageTest):
    INITIAL = ("import distro_train, plain; model = plain.Plain(); "
               "distro_train.save_initial(model, 'initial', outside=model.OUTSIDE)")
    OPENED = "import plain, safetensors.torch; plain.Plain(seed=9).load_state_dict(safetensors.torch.load_file('trained/model.safetensors'))"

    def machine(self, name, address, prefix=()):
        made = machines.Machine(name, self.workspace.folder, {"aggregator.example": address}, prefix, PATH=self.environment["PATH"],
                                PYTHONPATH=f"{os.environ['PYTHONPATH']}:{HERE}")
        shutil.copy(self.workspace.text, made.srv / "text.txt")
        return made

    def test_trains_saves_and_opens_module(self):
        with contextlib.ExitStack() as ends:
            try:
                hub = ends.enter_context(shaped_links.Hub())
                host = self.machine("host", "127.0.0.1")
                host.may_be()
                links = {name: hub.link(1e6, 10e6) for name in ("w1", "w2", "w3")}
            except (shaped_links.Refused, AssertionError, OSError) as reason:
                self.skipTest(f"machines cannot be made here: {reason}")
            friends = {name: self.machine(name, link.address, link.prefix) for name, link in links.items()}
            run = re.search(r"^cat > run.json.*?^END$", self.rehearse, re.M | re.S)[0]
            run = run.replace('"rounds": 160, "sequence_length": 128', '"rounds": 30, "sequence_length": 16')
            host.bash(f"{run}\npython -c {self.INITIAL!r}\n{self.prepare}", "/srv")
            running = [host.start("aggregator", self.serve, "/srv")]
            self.workspace.processes += running
            for name, friend in friends.items():
                shutil.copy(host.srv / f"{name}.invite", friend.srv)
                running.append(friend.start(name, f"python {HERE}/train.py --invite {name}.invite --text text.txt --state_dir state "
                                                  "--summary summary.json --folder trained", "/srv"))
                self.workspace.processes.append(running[-1])
            for process in running[1:]:
                self.assertEqual(process.exit_code(), 0, process.log())
            for friend in friends.values():
                friend.bash(f"python -W error -c {self.OPENED!r}", "/srv")  # every tensor is there, and no other
            models = {(friend.srv / "trained" / "model.safetensors").read_bytes() for friend in friends.values()}
            self.assertEqual(len(models), 1)


if __name__ == "__main__":
    processes.main()
