"""Workers in Python, as real processes: beside one in C++, alone, killed and started again, interrupted, refused."""
import hashlib
import json
import os
import pathlib
import re
import signal
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
import processes  # noqa: E402
from processes import Aggregator, ProcessTest, Worker  # noqa: E402
from gpu import require_gpu  # noqa: E402
from page import row_of  # noqa: E402

PYTHON = os.environ["DISTRO_TORCH_PYTHON"]
os.environ["PYTHONPATH"] = os.environ["DISTRO_PYTHON_PACKAGE"]


class PythonRunsTest(ProcessTest):
    def start_python(self, name, aggregator, *flags, log_name=None):
        """`aggregator`: None where the flags say where it is, and who this is."""
        space = self.workspace
        where = () if aggregator is None else ("--aggregator", aggregator.grpc, "--name", name)
        command = [PYTHON, "-B", "-W", "error", HERE / "train.py", *where, "--text", space.text, "--summary",
                   space.folder / f"{log_name or name}.json", *flags]
        worker = Worker(log_name or name, command, space.folder)
        space.processes.append(worker)
        return worker

    def llama(self, name, aggregator, *flags, **more):
        return self.start_python(name, aggregator, "--config", self.workspace.folder / "config.json", *flags, **more)

    def create_plain_run(self, **overrides):
        """Of a model that this project does not know."""
        space = self.workspace
        script = ("import distro_train, plain; model = plain.Plain(); "
                  f"distro_train.save_initial(model, {str(space.folder / 'plain')!r}, outside=model.OUTSIDE)")
        done = space.start("initial", [PYTHON, "-B", "-W", "error", "-c", f"import sys; sys.path.insert(0, {str(HERE)!r}); {script}"])
        self.assertEqual(done.exit_code(), 0, done.log())
        return space.start_aggregator("--run", space.write_run(workers="python", **overrides), "--model", space.folder / "plain")

    def reports_of(self, name, aggregator):
        """Loss and bytes of a worker as `distroctl workers` has them; None before the first."""
        listed = json.loads(self.workspace.distroctl("workers", aggregator.grpc, "--insecure", "--output", "json"))
        found = [worker for worker in listed["workers"] if worker["name"] == name and worker["loss"] and worker["sent_bytes"]]
        return found[0] if found else None

    def losses(self, worker):
        return [float(loss) for loss in re.findall(r"step loss=(\S+)", worker.out_path.read_text())]

    def assert_learned(self, worker):
        losses = self.losses(worker)
        self.assertLess(sum(losses[-8:]) / 8, sum(losses[:8]) / 8 - 0.3, losses)

    def test_beside_a_worker_in_cpp(self):
        space = self.workspace
        space.beside_model = {"tokenizer.json": b"of the run", "generation_config.json": b"{}"}
        aggregator = space.create_run(rounds=50, start_workers=2, min_workers=2, peak_learning_rate=0.01,
                                      evaluation_interval_rounds=20)
        native = space.start_worker("native", aggregator.grpc)
        python = self.llama("python", aggregator, "--batch_size", "1", "--folder", space.folder / "saved")
        self.finish([python, native])
        self.assertEqual(space.replay()["state"], python.summary()["state_hash"])
        self.assert_learned(python)
        readings = python.summary()
        self.assertGreater(readings["phase_seconds"]["forward_backward"], 0, "the program's time has its phase")
        self.assertEqual((readings["exchanged"], readings["updates_sent"], readings["done"]), (50, 50, True))
        self.assertEqual(readings["told"], list(range(1, 51)), "on_round is called after each round")
        for field in ("first_evaluation_loss", "last_evaluation_loss"):
            self.assertAlmostEqual(readings[field], native.summary()[field], places=5, msg="both compute the same function")
        self.assertEqual(len(re.findall(r"evaluated round=\d+ held_out_loss=", python.log())), 1 + 50 // 20 + 1, "as run.json says")
        self.assertRegex(python.log(), r"round 50/50  loss \d\.\d{4}  held-out \d\.\d{4}  \d+ tokens/s  up \d+\.\d kB/s")
        self.assertEqual(len(self.losses(python)), 50 * 2 * 4, "50 rounds of 2 local steps of 4 samples, one at a time")
        exported = space.distroctl("log", "replay", "--data_dir", space.data_dir)
        self.assertIn(readings["state_hash"], exported)
        self.assertEqual(json.loads((space.folder / "saved" / "config.json").read_text())["model_type"], "llama")
        for name, content in space.beside_model.items():
            self.assertEqual((space.folder / "saved" / name).read_bytes(), content, "travels with the run")

    def test_asks_mirrors_of_its_argument(self):
        objects, dead = self.workspace.hold_address(), processes.hold_port()
        self.addCleanup(dead.close)
        aggregator = self.workspace.create_run("--objects", objects, "--mirrors", "http://%s:%d" % dead.getsockname(),
                                               rounds=12, start_workers=2, min_workers=2)
        nearer = self.llama("nearer", aggregator, "--mirror", f"http://{objects}")
        none = self.llama("none", aggregator, "--no_mirrors")
        self.finish([nearer, none])
        readings = nearer.summary()
        self.assertEqual(readings["mirror_failures"], 0)
        self.assertGreater(readings["mirror_bytes"], readings["received_payload_bytes"], "the snapshot too")
        self.assertEqual((none.summary()["mirror_bytes"], none.summary()["mirror_failures"]), (0, 0))

    def test_knows_its_step_in_extended_run(self):
        aggregator = self.workspace.create_run(rounds=30, start_workers=2, min_workers=2, local_steps=2)
        native = self.workspace.start_worker("native", aggregator.grpc, "--hold_back", "30ms")
        python = self.llama("python", aggregator)
        aggregator.await_round(3)
        self.workspace.distroctl("run", "extend", aggregator.grpc, "--rounds", 40, "--insecure")
        self.finish([native, python])
        steps, totals = zip(*python.summary()["steps"])
        self.assertEqual(steps, tuple(range(80)))
        self.assertEqual(sorted(set(totals)), [60, 80])

    def test_samples_are_read_ahead_and_once(self):
        space = self.workspace
        aggregator = space.create_run(rounds=20, start_workers=2, min_workers=2, samples_per_worker=4, local_steps=2)
        workers = [self.llama(f"python-{i}", aggregator, "--batch_size", "2") for i in range(2)]
        self.finish(workers)
        read = []
        for worker in workers:
            readings = worker.summary()
            self.assertEqual(readings["batches"], 20 * 2 * 2)
            self.assertGreater(readings["batches_ahead"], readings["batches"] // 2)
            read += readings["given"][:20 * 8]  # then what was read ahead
        self.assertEqual(len(set(read)), len(read), "no sample is another worker's too")

    def test_saves_whole_model_of_their_own(self):
        space = self.workspace
        aggregator = self.create_plain_run(rounds=30, start_workers=2, min_workers=2, peak_learning_rate=0.01)
        native = space.start_worker("native", aggregator.grpc)
        self.assertEqual(native.exit_code(), 3, native.log())
        self.assertIn("distro-train", native.log())
        other = self.start_python("other", aggregator, "--mistake", "other_base")
        self.assertEqual(other.exit_code(), 1)
        self.assertIn("OtherModel: 'frozen.weight' differs", other.log())
        workers = [self.start_python(name, aggregator, *flags, "--folder", space.folder / f"saved-{name}")
                   for name, *flags in (("by-run",), ("by-sgd-of-its-own", "--sgd"))]
        self.finish(workers)
        self.assert_learned(workers[0])
        saved = [(space.folder / f"saved-{worker.name}" / "model.safetensors").read_bytes() for worker in workers]
        self.assertEqual(*saved)
        script = (f"import sys; sys.path.insert(0, {str(HERE)!r}); import plain, safetensors.torch; "
                  f"plain.Plain(seed=9).load_state_dict(safetensors.torch.load_file({str(space.folder / 'saved-by-run' / 'model.safetensors')!r}))")
        opened = space.start("opened", [PYTHON, "-B", "-W", "error", "-c", script])
        self.assertEqual(opened.exit_code(), 0, opened.log())

    def test_other_tensors_of_a_model_of_their_own_are_named(self):
        aggregator = self.create_plain_run()
        self.workspace.init_model()
        other = self.llama("other", aggregator)
        self.assertEqual(other.exit_code(), 1)
        self.assertRegex(other.log(), r"OtherModel: the model has other tensors to train than the run: .*head\.bias")
        self.assertEqual(row_of("the model has other tensors to train than the run: "), "OtherModel")

    def test_bf16_beside_a_worker_in_cpp(self):
        space = self.workspace
        aggregator = space.create_run(rounds=30, start_workers=3, min_workers=3, peak_learning_rate=0.01)
        native = space.start_worker("native", aggregator.grpc)
        by_run = self.llama("python", aggregator, "--dtype", "bfloat16", "--folder", space.folder / "saved")
        by_sgd = self.llama("sgd", aggregator, "--dtype", "bfloat16", "--sgd")
        self.finish([by_run, by_sgd, native])  # equal state hashes
        self.assert_learned(by_run)
        held = by_run.summary()["bytes"]
        parameters = by_run.summary()["parameters"]
        self.assertEqual(held, {"module_bytes": 2 * parameters, "master_bytes": 4 * parameters, "host_bytes": 0,
                                "replica_bytes": 4 * parameters, "rule_bytes": 4 * parameters})
        self.assertAlmostEqual(by_run.summary()["last_evaluation_loss"], native.summary()["last_evaluation_loss"], delta=0.05)

    def test_model_of_their_own_on_a_gpu(self):
        require_gpu(self, PYTHON)
        space = self.workspace
        aggregator = self.create_plain_run(rounds=30, start_workers=2, min_workers=2, peak_learning_rate=0.01)
        workers = [self.start_python(name, aggregator, "--device", device, "--folder", space.folder / f"saved-{name}")
                   for name, device in (("gpu", "cuda"), ("host", "cpu"))]
        self.finish(workers)
        self.assert_learned(workers[0])
        saved = [(space.folder / f"saved-{worker.name}" / "model.safetensors").read_bytes() for worker in workers]
        self.assertEqual(*saved, "the frozen part and the buffers too")
        losses = [worker.summary()["last_evaluation_loss"] for worker in workers]
        self.assertAlmostEqual(*losses, delta=0.01)

    def test_on_a_gpu_beside_a_worker_in_cpp(self):
        require_gpu(self, PYTHON)
        space = self.workspace
        aggregator = space.create_run(rounds=30, start_workers=3, min_workers=3, peak_learning_rate=0.01)
        native = space.start_worker("native", aggregator.grpc)
        single = self.llama("single", aggregator, "--device", "cuda")
        half = self.llama("half", aggregator, "--device", "cuda", "--dtype", "bfloat16")
        self.finish([single, half, native])
        for worker in (single, half):
            self.assert_learned(worker)
            self.assertAlmostEqual(worker.summary()["last_evaluation_loss"], native.summary()["last_evaluation_loss"], delta=0.05)
        # Pinned: each tensor takes the next power of two.
        self.assertIn(single.summary()["bytes"]["host_bytes"], range(4 * single.summary()["parameters"], 8 * single.summary()["parameters"]))

    def test_signs_of_a_bf16_module(self):
        aggregator = self.workspace.create_run(rounds=20, start_workers=2, min_workers=2, method="signs", local_steps=None, overlap=1)
        native = self.workspace.start_worker("native", aggregator.grpc)
        python = self.llama("python", aggregator, "--dtype", "bfloat16")
        self.finish([python, native])
        self.assert_learned(python)

    def test_signs(self):
        aggregator = self.workspace.create_run(rounds=30, start_workers=2, min_workers=2, method="signs", local_steps=None,
                                               overlap=1)
        native = self.workspace.start_worker("native", aggregator.grpc)
        python = self.llama("python", aggregator)
        self.finish([python, native])
        self.assert_learned(python)

    def test_forks_data_loader_after_connect(self):
        aggregator = self.workspace.create_run(rounds=6, start_workers=2, min_workers=2)
        native = self.workspace.start_worker("native", aggregator.grpc)
        python = self.llama("python", aggregator, "--loader_workers", "2")
        self.finish([python, native])

    def test_schedules_inner_optimizer(self):
        aggregator = self.workspace.create_run(rounds=6, start_workers=1, min_workers=1, local_steps=2)
        python = self.llama("python", aggregator, "--sgd", "--schedule")
        self.finish([python])
        rates = [float(rate) for rate in re.findall(r"rate=(\S+)", python.out_path.read_text())]
        self.assertEqual(rates, [0.05 * 0.5 ** (step // 5) for step in range(1, 13)])

    def test_begins_with_newest_parameters(self):
        space = self.workspace
        aggregator = space.create_run(rounds=60, start_workers=1, peak_learning_rate=0.01)
        native = space.start_worker("native", aggregator.grpc, "--hold_back", "100ms")
        aggregator.await_round(20)
        python = self.llama("python", aggregator)
        processes.until(lambda: self.reports_of("python", aggregator), "its loss and its bytes are shown")
        self.finish([python, native])
        begins = re.search(r"begins moments=\d+ round=(\d+) loss=(\S+)", python.out_path.read_text())
        self.assertGreater(int(begins[1]), 20)
        self.assertLess(float(begins[2]), native.summary()["first_evaluation_loss"] - 0.3)

    def test_killed_and_started_again(self):
        space = self.workspace
        aggregator = space.create_run(rounds=60, start_workers=2, min_workers=1, peak_learning_rate=0.01)
        native = space.start_worker("native", aggregator.grpc, "--hold_back", "200ms")
        state = ("--state_dir", space.folder / "state")
        killed = self.llama("python", aggregator, *state, log_name="killed")
        aggregator.await_round(10)
        killed.kill()
        python = self.llama("python", aggregator, *state)
        self.finish([python, native])
        begins = re.search(r"begins moments=(\d+)", python.out_path.read_text())
        self.assertEqual(int(begins[1]), 7, "Muon's buffers of the 7 matrices inside are there")
        going_on = re.search(r"continuing with the worker's state round=(\d+)", python.log())
        self.assertGreaterEqual(int(going_on[1]), 8)
        self.assertNotIn("begins anew", python.log())
        self.assertGreater(python.summary()["updates_sent"], 0)

    def test_interrupted_and_started_again(self):
        space = self.workspace
        aggregator = space.create_run(rounds=40, start_workers=2, min_workers=1, local_steps=4)
        native = space.start_worker("native", aggregator.grpc, "--hold_back", "30ms")
        state = ("--state_dir", space.folder / "state")
        stopped = self.llama("python", aggregator, *state, log_name="stopped")
        aggregator.await_round(5)
        stopped.signal(signal.SIGINT)
        self.assertEqual(stopped.exit_code(), -signal.SIGINT, "Python's own way to end")
        self.assertIn("KeyboardInterrupt", stopped.log())
        processes.until(lambda: "left" in aggregator.changes("python"), "python has left")
        python = self.llama("python", aggregator, *state)
        self.finish([python, native])
        self.assertIn("continuing with the worker's state", python.log())
        self.assertNotIn("begins anew", python.log())

    def test_with_tls_and_a_token_a_certificate_or_an_invite(self):
        space = self.workspace
        tls, ports = space.folder / "tls", space.folder / "tls.ports"
        space.distroctl("certs", "--out", tls, "--host", "127.0.0.1", "--worker", "certified")
        said = space.distroctl("token", "new", "python", "--role", "worker")
        token, line = (re.search(rf"^{what} +(.*)$", said, re.M)[1] for what in ("token", "line"))
        (space.folder / "tokens").write_text(line + "\n")
        command = [self.binaries.aggregator, "--data_dir", space.data_dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
                   "--port_file", ports, "--cert", tls / "server.pem", "--key", tls / "server-key.pem", "--ca", tls / "ca.pem",
                   "--tokens_file", space.folder / "tokens", "--run", space.write_run(rounds=10, start_workers=3), "--model", space.init_model()]
        aggregator = Aggregator("aggregator", command, space.folder, ports)
        space.processes.append(aggregator)
        aggregator.await_ports()
        def by(token):
            return "--ca", tls / "ca.pem", f"--token={token}"  # which may begin with "-"

        for name, given, error in (("python", "x" * 43, "NotAuthorized"), ("other", token, "NotAuthorized")):
            refused = self.llama(name, aggregator, *by(given), log_name=f"{name}-refused")
            self.assertEqual(refused.exit_code(), 1)
            self.assertIn(error, refused.log())
        invite = space.folder / "invited.invite"
        space.distroctl("invite", "invited", "--aggregator", aggregator.grpc, "--ca", tls / "ca.pem", "--tokens_file",
                        space.folder / "tokens", "--out", invite)
        certificate = ("--ca", tls / "ca.pem", "--cert", tls / "worker-certified.pem", "--key", tls / "worker-certified-key.pem", "--server_name",
                       "127.0.0.1")
        self.finish([self.llama("python", aggregator, *by(token)), self.llama("certified", aggregator, *certificate),
                     self.llama("invited", None, "--invite", invite)])
        self.assertEqual(list(space.folder.glob("distro-train-*")), [], "nothing of the token is left")

    def test_data_that_is_not_said(self):
        space = self.workspace
        aggregator = space.create_run(rounds=10)
        refused = self.llama("refused", aggregator, "--no_fingerprint")
        self.assertEqual(refused.exit_code(), 1)
        self.assertIn("OtherData", refused.log())
        self.assertIn('"data_fingerprint": "any"', refused.log())

    def test_pins_tokenizer(self):
        space = self.workspace
        tokenizer = space.folder / "tokenizer.json"
        tokenizer.write_text("{}")
        pinned = hashlib.sha256(tokenizer.read_bytes()).hexdigest()
        aggregator = space.create_run(rounds=10, tokenizer_sha256=pinned)
        for name, given, message in (("silent", (), "give connect(tokenizer=...)"),
                                     ("other", ("--tokenizer", "bytes"), "this worker's tokens are bytes")):
            refused = self.llama(name, aggregator, *given)
            self.assertEqual(refused.exit_code(), 1)
            self.assertIn("OtherData", refused.log())
            self.assertIn(message, refused.log())
        self.finish([self.llama("python", aggregator, "--tokenizer", tokenizer)])

    def test_mistakes_of_programs(self):
        aggregator = self.workspace.create_run(rounds=10)
        for mistake, kind in (("no_backward", "RuntimeError"), ("replaced", "RuntimeError"), ("scheduled", "ValueError")):
            refused = self.llama(mistake.replace("_", "-"), aggregator, "--mistake", mistake)
            self.assertEqual(refused.exit_code(), 1)
            self.assert_on_page(refused, kind)

    def assert_on_page(self, ended, kind):
        """The last line of its log is the message of an exception of this class, as docs/troubleshooting.md has it."""
        raised, message = ended.log().splitlines()[-1].split(": ", 1)
        self.assertEqual((raised, row_of(message)), (kind, kind), message)

    def test_takes_any_data(self):
        space = self.workspace
        aggregator = space.create_run(rounds=10, start_workers=2, min_workers=2, data_fingerprint="any")
        native = space.start_worker("native", aggregator.grpc)
        self.finish([self.llama("python", aggregator, "--no_fingerprint"), native])

    def test_refused(self):
        space = self.workspace
        aggregator = space.create_run(rounds=10, start_workers=2)
        native = space.start_worker("native", aggregator.grpc)
        other = self.start_python("other", aggregator)
        self.assertEqual(other.exit_code(), 1)
        self.assertRegex(other.log(), r"OtherModel: the model has other tensors to train than the run: .*model\.embed_tokens\.weight")
        text = space.folder / "other.txt"
        text.write_text(processes.text(2))
        space.text, kept = text, space.text
        stranger = self.llama("stranger", aggregator)
        space.text = kept
        self.assertEqual(stranger.exit_code(), 1)
        self.assertIn("OtherData", stranger.log())
        self.finish([self.llama("python", aggregator), native])


if __name__ == "__main__":
    processes.main()
