"""distro-train local: several workers of one program on this machine."""
import json
import os
import re
import signal

from examples import EXAMPLES, PYTHON, ExampleTest  # which says where the next one is
import processes


class LocalTest(ExampleTest):
    script = "nanogpt.py"

    def setUp(self):
        super().setUp()
        space = self.workspace
        self.initial = space.folder / "initial"
        self.run_to_its_end("init", "init", "--out", self.initial, "--layers", "2", "--width", "32", "--heads", "2", "--positions", "32")
        self.run_json = space.write_run(workers="python", start_workers=8, rounds=4000, peak_learning_rate=0.02, evaluation_interval_rounds=10)

    def local(self, name, program, *arguments, workers=2, rounds=20, run=None, before=()):
        command = [*before, PYTHON, "-B", "-m", "distro_train", "local", "--workers", workers, "--rounds", rounds, "--run", run or self.run_json, "--model",
                   self.initial, "--aggregator_program", self.binaries.aggregator, program, *arguments]
        return self.workspace.start(name, command)

    def nanogpt(self, name, **more):
        """With what a friend's machine is given: an invite that is not here, and a folder for its state."""
        space = self.workspace
        return self.local(name, EXAMPLES / "nanogpt.py", "train", "--invite", space.folder / "w1.invite", "--model", self.initial, "--data",
                          space.text, "--state_dir", space.folder / "state", "--out", space.folder / "trained", **more)

    def program(self, text):
        path = self.workspace.folder / "program.py"
        path.write_text(text)
        return path

    def test_workers_of_a_program_train_together(self):
        space = self.workspace
        done = self.nanogpt("local")
        self.assertEqual(done.exit_code(), 0, done.log())
        log = done.log()
        self.assertIn("start_workers 2, rounds 20", log, "what run.json says otherwise")
        states = re.findall(r"^w\d +\| done: state (\S+)$", log, re.M)
        self.assertEqual((len(states), len(set(states))), (2, 1), log)
        self.assertRegex(log, rf"every worker has the parameters {states[0]}\n$")
        rows = re.findall(r"^local +\| (w\d) +20 +(\d\.\d{4}) +(\d\.\d{4}) +\d+\.\d\d MB +\d+\.\d\d MB$", log, re.M)
        self.assertEqual([name for name, _, _ in rows], ["w1", "w2"], log)
        self.assertEqual(rows[0][2], rows[1][2], "the held-out loss of the same parameters")
        self.assertTrue((space.folder / "trained" / "model.safetensors").exists())
        self.assertFalse((space.folder / "state").exists(), "their state is temporary")
        self.assertEqual(list(space.folder.glob("distro-train-*")), [])

    def test_interrupted(self):
        in_background = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]  # as a script starts what it does not wait for
        for number, before in (signal.SIGINT, []), (signal.SIGTERM, in_background):
            local = self.nanogpt(f"local{number}", rounds=4000, before=before)
            processes.until(lambda: "round 2:" in local.log(), "it trains")
            local.signal(number)
            self.assertEqual(local.exit_code(), 130, local.log())
            self.assertEqual(local.log().count("KeyboardInterrupt\n"), 2, "each worker has left as after Ctrl-C")
            self.assertEqual(list(self.workspace.folder.glob("distro-train-*")), [])

    def test_ends_all_when_one_fails(self):
        program = self.program(f"import os, sys\nif '\"w2\"' in os.environ['DISTRO_TRAIN_LOCAL']: sys.exit('no data here')\n"
                               f"import time\ntime.sleep({processes.LIMIT_SECONDS})\n")
        done = self.local("local", program)
        self.assertEqual(done.exit_code(), 1, done.log())
        self.assertIn("w2         | no data here\n", done.log())
        self.assertIn("w2 ended with 1: the others are stopped", done.log())

    def test_names_missing_connect(self):
        done = self.local("local", self.program("print('hello')\n"))
        self.assertEqual(done.exit_code(), 1, done.log())
        self.assertIn("w1 ended without a run: the program has not called distro_train.connect", done.log())

    def test_starts_module(self):
        done = self.local("local", "-m", "platform")
        self.assertEqual(done.exit_code(), 1, done.log())
        self.assertRegex(done.log(), r"w1 +\| Linux")

    def test_refuses_what_cannot_start(self):
        space = self.workspace
        broken, refused = space.folder / "broken.json", space.folder / "refused.json"
        broken.write_text("{")
        refused.write_text(json.dumps({**json.loads(self.run_json.read_text()), "roundz": 3}))
        program = self.program("")
        for name, given, message in (
                ("workers", {"workers": 0}, "--workers: 0 is not 1 to 64"),
                ("absent", {"run": space.folder / "no.json"}, "no.json: No such file or directory; docs/run_configuration.md"),
                ("broken", {"run": broken}, "broken.json: is no JSON"),
                ("refused", {"run": refused}, "roundz")):
            done = self.local(name, program, **given)
            self.assertEqual(done.exit_code(), 2, done.log())
            self.assertIn(message, done.log())
        done = self.local("program", space.folder / "no.py")
        self.assertEqual(done.exit_code(), 2, done.log())
        self.assertIn("no.py: there is no such program", done.log())

    def test_only_an_aggregator_of_this_machine(self):
        os.environ["DISTRO_TRAIN_LOCAL"] = json.dumps({"aggregator": "192.0.2.1:7700", "name": "w1", "folder": "/", "saves": True})
        self.addCleanup(os.environ.pop, "DISTRO_TRAIN_LOCAL")
        done = self.start_script("worker", "train", "--invite", "w1.invite", "--model", self.initial, "--data", self.workspace.text)
        self.assertEqual(done.exit_code(), 1)
        self.assertIn("DISTRO_TRAIN_LOCAL: '192.0.2.1:7700' is not on this machine; unset it", done.log())


if __name__ == "__main__":
    processes.main()
