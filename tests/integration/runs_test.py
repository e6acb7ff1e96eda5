"""Runs as a whole: created from tensors that no C++ worker knows; with a tokenizer that travels; extended;
restored from an archive; with a line a round."""
import hashlib
import json
import re
import shutil
import signal

import processes
from processes import ProcessTest, until

OTHER_MODEL = {
    "format": "distro-tensors", "version": 1, "tensors": [
        {"name": "letters.weight", "shape": [256, 32], "init": "normal", "std": 0.02},
        {"name": "mix.weight", "shape": [96, 32], "init": "normal", "std": 0.1},
        {"name": "norm.weight", "shape": [32], "init": "ones"},
        {"name": "norm.bias", "shape": [32], "init": "zeros"}]}


class CreateTest(ProcessTest):
    """Of a model that this project does not know."""

    def test_from_a_manifest_a_run_is_created_that_cpp_workers_refuse(self):
        space = self.workspace
        manifest, initial = space.folder / "tensors.json", space.folder / "initial"
        manifest.write_text(json.dumps(OTHER_MODEL))
        space.distroctl("init-model", "--from-manifest", manifest, "--outside", "letters.weight", "--seed", 3, "--out", initial)
        aggregator = space.start_aggregator()
        refused = space.distroctl("run", "create", aggregator.grpc, "--run", space.write_run(), "--model", initial, "--insecure",
                                  code=2)
        self.assertIn('"workers": "python"', refused, "what to say in run.json")
        created = space.distroctl("run", "create", aggregator.grpc, "--run", space.write_run(workers="python"), "--model", initial,
                                  "--insecure")
        self.assertIn("created run", created)
        native = space.start_worker("native", aggregator.grpc)
        self.assertEqual(native.exit_code(), 3, native.log())
        self.assertIn("model is a PyTorch module", native.log())
        self.assertIn("distro-train", native.log())

    def test_from_tensors_a_run_is_created_with_their_bits(self):
        space = self.workspace
        initial = space.folder / "initial"
        tensors = space.init_model() / "model.safetensors"
        space.distroctl("init-model", "--from-safetensors", tensors, "--outside", "model.embed_tokens.weight", "--out", initial)
        space.start_aggregator("--run", space.write_run(workers="python"), "--model", initial)
        self.assertEqual((space.data_dir / "snapshots" / "0.safetensors").read_bytes(), tensors.read_bytes())


TOKENIZER = json.dumps({"version": "1.0", "model": {"type": "BPE"}}).encode() * 40000  # several frames
COMPANIONS = {"tokenizer.json": TOKENIZER, "tokenizer_config.json": b"{}", "chat_template.jinja": b"{{ messages }}",
              "generation_config.json": b'{"eos_token_id": 0}', "special_tokens_map.json": b"{ }", "tokenizer.model": b"\0model"}


class CompanionsTest(ProcessTest):
    def create(self, **overrides):
        """A run through `run create`, of a folder with COMPANIONS and a file that does not travel."""
        space = self.workspace
        space.beside_model = {**COMPANIONS, "README.md": b"stays"}
        initial = space.init_model()
        aggregator = space.start_aggregator()
        space.distroctl("run", "create", aggregator.grpc, "--run", space.write_run(**overrides), "--model", initial, "--insecure")
        return aggregator

    def assert_companions(self, folder):
        names = {path.name for path in folder.iterdir()}
        self.assertEqual(names, {*COMPANIONS, "config.json", "model.safetensors"}, folder)
        for name, content in COMPANIONS.items():
            self.assertEqual((folder / name).read_bytes(), content, f"{folder}: {name}")

    def test_they_reach_every_checkpoint_unchanged(self):
        space = self.workspace
        aggregator = self.create(rounds=12)
        archiver = space.start_archiver(aggregator.grpc, "--snapshot_interval_rounds", 5)
        worker = space.start_worker("w", aggregator.grpc, "--checkpoint_dir", space.folder / "saved",
                                    "--checkpoint_interval_rounds", 6)
        self.finish([worker])
        self.assertEqual(archiver.exit_code(), 0)
        for folder in (space.folder / "saved" / "round-6", space.folder / "published" / "round-12"):
            self.assert_companions(folder)
        for name, content in COMPANIONS.items():
            self.assertEqual((space.folder / "saved" / name).read_bytes(), content)

    def test_survives_restart(self):
        space = self.workspace
        aggregator = self.create(rounds=8)
        aggregator.kill()
        again = space.start_aggregator(log_name="again")
        self.finish([space.start_worker("w", again.grpc, "--checkpoint_dir", space.folder / "saved")])
        self.assert_companions(space.folder / "saved")
        again.kill()
        (space.data_dir / "companions" / "tokenizer.json").write_bytes(b"other")
        damaged = space.start("damaged", space.aggregator_command())
        self.assertEqual(damaged.exit_code(), 4)
        self.assertIn("companions/tokenizer.json", damaged.log())

    def test_workers_of_another_tokenizer_are_refused(self):
        space = self.workspace
        pinned = hashlib.sha256(TOKENIZER).hexdigest()
        aggregator = self.create(tokenizer_sha256=pinned, rounds=8)
        text = space.start_worker("text", aggregator.grpc)
        self.assertEqual(text.exit_code(), 3, text.log())
        self.assertIn("tokens are bytes", text.log())
        self.assertIn(pinned, text.log())
        self.assertIn("distro-data --tokenizer", text.log())
        indexes = {name: self.write_index(name, sha256) for name, sha256 in (("right", pinned), ("wrong", "a" * 64))}
        wrong = self.start_with_data("wrong", aggregator, indexes["wrong"])
        self.assertEqual(wrong.exit_code(), 3, wrong.log())
        self.assertIn(f"of the tokenizer {'a' * 64}", wrong.log())
        right = self.start_with_data("right", aggregator, indexes["right"])
        self.finish([right])

    def start_with_data(self, name, aggregator, data):
        """Of a flag that is given twice the last counts."""
        return self.workspace.start_worker(name, aggregator.grpc, "--data", data)

    def write_index(self, name, sha256):
        """The workspace's text as 16-bit tokens, with an index that says what made them."""
        folder = self.workspace.folder / name
        folder.mkdir()
        tokens = self.workspace.text.read_bytes()
        shard = b"".join(token.to_bytes(2, "little") for token in tokens)
        (folder / "0.u16").write_bytes(shard)
        (folder / "d").write_bytes(len(tokens).to_bytes(8, "little"))
        said = self.workspace.start(f"{name}-fingerprint", [self.binaries.worker, "fingerprint", "--data", self.workspace.text])
        self.assertEqual(said.exit_code(), 0, said.log())
        (folder / "index.json").write_text(json.dumps({
            "format": "distro-tokens", "version": 1, "dtype": "uint16", "vocabulary_size": 256, "tokens": len(tokens),
            "fingerprint": said.out_path.read_text()[:64],
            "tokenizer": {"kind": "tokenizer.json", "sha256": sha256, "end_token": None},
            "documents": {"name": "d", "count": 1, "sha256": hashlib.sha256((folder / "d").read_bytes()).hexdigest()},
            "shards": [{"name": "0.u16", "tokens": len(tokens), "sha256": hashlib.sha256(shard).hexdigest()}]}))
        return folder / "index.json"

    def test_makes_no_run_with_other_tokenizer(self):
        space = self.workspace
        space.beside_model = {"tokenizer.json": b"another"}
        initial = space.init_model()
        aggregator = space.start_aggregator()
        refused = space.distroctl("run", "create", aggregator.grpc, "--run", space.write_run(tokenizer_sha256="a" * 64), "--model",
                                  initial, "--insecure", code=2)
        self.assertIn("tokenizer_sha256", refused)


class ExtendTest(ProcessTest):
    def extend(self, aggregator, rounds, **more):
        return self.workspace.distroctl("run", "extend", aggregator.grpc, "--rounds", rounds, "--insecure", **more)

    def archive(self, aggregator, log_name):
        return self.workspace.start_archiver(aggregator.grpc, "--snapshot_interval_rounds", 5, log_name=log_name)

    def assert_ended_at(self, rounds, workers, archiver):
        """Workers, archiver and a replay of the log have the same bits."""
        state_hash = self.finish(workers)
        self.assertEqual(archiver.exit_code(), 0, archiver.log())
        self.assertIn((str(rounds), state_hash), re.findall(r"own copy saved round=(\d+) .*state_hash=(\w+)", archiver.log()))
        replay = self.workspace.replay()
        self.assertTrue(replay["rounds"].startswith(f"{rounds} of {rounds},"), replay)
        self.assertEqual(replay["state"], state_hash)
        self.assertTrue((self.workspace.folder / "published" / f"round-{rounds}").is_dir())

    def rates(self):
        """Of the rounds whose header is there, as the records have them."""
        space = self.workspace
        rounds = json.loads(space.distroctl("log", "ls", "--data_dir", space.data_dir, "--output", "json"))["rounds"]
        shown = (space.distroctl("log", "show", line["round"], "--data_dir", space.data_dir) for line in rounds)
        return [float(re.search(r"(?:eta|of rate) (\S+),", text)[1]) for text in shown]

    def test_while_it_trains_workers_and_archiver_go_on(self):
        space = self.workspace
        aggregator = space.create_run(rounds=30, start_workers=2, min_workers=1)
        archiver = self.archive(aggregator, "archiver")
        workers = [space.start_worker(name, aggregator.grpc, "--hold_back", "20ms") for name in ("a", "b")]
        aggregator.await_round(5)
        self.assertIn("extended to 60 rounds", self.extend(aggregator, 60))
        aggregator.await_round(12)
        aggregator.kill()
        aggregator = space.start_aggregator(log_name="again", listen=aggregator.grpc)
        self.assertIn("extended to 60 rounds", self.extend(aggregator, 60), "a repeat is harmless")
        self.assertIn(": ask for more than that", self.extend(aggregator, 59, code=3))
        self.assert_ended_at(60, workers, archiver)
        rates = self.rates()
        self.assertEqual(len(rates), 60)
        falls = [earlier - later for earlier, later in zip(rates[5:], rates[6:])]
        self.assertGreaterEqual(min(falls), 0, "no rate rises after warm-up")
        self.assertLess(max(falls), 0.15 * rates[5], "and none jumps")

    def test_once_it_is_done_rounds_open_again(self):
        space = self.workspace
        aggregator = space.create_run(rounds=12)
        state = ("--state_dir", space.folder / "state")
        first = space.start_worker("a", aggregator.grpc, *state, log_name="first")
        self.assert_ended_at(12, [first], self.archive(aggregator, "archiver"))
        self.assertEqual(json.loads(space.distroctl("run", "show", aggregator.grpc, "--insecure", "--output", "json"))["state"],
                         "done")
        self.extend(aggregator, 20)
        again = space.start_worker("a", aggregator.grpc, *state, log_name="again")
        archiver = self.archive(aggregator, "archiver_again")
        self.assert_ended_at(20, [again], archiver)
        self.assertIn("continuing with the worker's state", again.log())
        self.assertEqual(again.summary()["next_round"], 20)
        self.assertEqual(len(set(self.rates()[12:])), 1, "the lowest rate stays")
        self.assertGreater(self.rates()[-1], 0)


class RestoreTest(ProcessTest):
    """The aggregator's disk is lost; the archiver's folder still exists."""
    ROUNDS = 60

    def archive(self, address, log_name="archiver"):
        return self.workspace.start_archiver(address, "--snapshot_interval_rounds", 5, log_name=log_name)

    def begin(self, **overrides):
        space = self.workspace
        space.beside_model = {"tokenizer.json": TOKENIZER}
        aggregator = space.create_run(rounds=self.ROUNDS, start_workers=2, min_workers=1, **overrides)
        archiver = self.archive(aggregator.grpc)
        workers = [space.start_worker(name, aggregator.grpc, "--hold_back", "30ms", "--state_dir", space.folder / name)
                   for name in ("a", "b")]
        return aggregator, archiver, workers

    def saved(self, archiver):
        """Rounds at which a copy was saved."""
        return [int(n) for n in re.findall(r"own copy saved round=(\d+)", archiver.log())]

    def lose(self, aggregator):
        aggregator.kill()
        shutil.rmtree(self.workspace.data_dir)

    def restore(self, **more):
        space = self.workspace
        return space.distroctl("run", "restore", "--archive", space.folder / "archive", "--data_dir", space.data_dir, **more)

    def finish_all(self, workers, archiver):
        state_hash = self.finish(workers)
        self.assertEqual(archiver.exit_code(), 0, archiver.log())
        self.assertEqual(re.findall(r"own copy saved round=(\d+) .*state_hash=(\w+)", archiver.log())[-1],
                         (str(self.ROUNDS), state_hash))
        self.assertEqual(self.workspace.replay()["state"], state_hash)
        self.assertIn("no damage", self.workspace.distroctl("log", "verify", "--data_dir", self.workspace.data_dir))

    def test_of_an_older_copy_workers_that_are_ahead_go_on(self):
        space = self.workspace
        aggregator, archiver, workers = self.begin()
        until(lambda: archiver.alive() and len(self.saved(archiver)) >= 2, "two copies saved")
        archiver.kill()
        copy = self.saved(archiver)[-1]
        aggregator.await_round(copy + 6)
        run_id = json.loads(space.distroctl("run", "show", aggregator.grpc, "--insecure", "--output", "json"))["run_id"]
        self.lose(aggregator)
        self.assertIn(f"restored {run_id} in {space.data_dir}: it continues at round {copy}", self.restore())
        self.assertIn("is not empty: give a new folder", self.restore(code=3))
        again = space.start_aggregator("--run", space.folder / "run.json", "--model", space.folder / "model", log_name="again",
                                       listen=aggregator.grpc)
        second = self.archive(again.grpc, "archiver_again")
        late = space.start_worker("late", again.grpc, "--checkpoint_dir", space.folder / "saved")
        self.finish_all([*workers, late], second)
        for worker in workers:
            self.assertRegex(worker.log(), r"resync: loading the newest snapshot and the log after it .*reason=diverged")
        self.assertEqual((space.folder / "saved" / "tokenizer.json").read_bytes(), TOKENIZER)
        rounds = json.loads(space.distroctl("log", "ls", "--data_dir", space.data_dir, "--output", "json"))["rounds"]
        self.assertEqual(rounds[-1]["round"], self.ROUNDS - 1)
        self.assertLess(rounds[0]["round"], copy, "the headers before the copy are there")

    def test_after_a_signal_to_the_archiver_nothing_of_its_rounds_is_lost(self):
        space = self.workspace
        aggregator, archiver, workers = self.begin()
        until(lambda: archiver.alive() and self.saved(archiver), "a copy saved")
        self.lose(aggregator)
        self.assertIn("an archiver works on it", self.restore(code=3))
        archiver.signal(signal.SIGTERM)
        self.assertEqual(archiver.exit_code(), 0)
        copy = self.saved(archiver)[-1]
        self.assertIn(f"it continues at round {copy}", self.restore())
        again = space.start_aggregator(log_name="again", listen=aggregator.grpc)
        self.finish_all(workers, self.archive(again.grpc, "archiver_again"))

    def test_keeps_rounds_of_extended_run(self):
        space = self.workspace
        aggregator, archiver, workers = self.begin()
        aggregator.await_round(3)
        self.ROUNDS = 70
        space.distroctl("run", "extend", aggregator.grpc, "--rounds", self.ROUNDS, "--insecure")
        round_now = aggregator.round()
        until(lambda: archiver.alive() and self.saved(archiver) and self.saved(archiver)[-1] > round_now + 1, "a copy after it")
        self.lose(aggregator)
        archiver.signal(signal.SIGTERM)
        self.assertEqual(archiver.exit_code(), 0)
        self.restore()
        again = space.start_aggregator(log_name="again", listen=aggregator.grpc)
        self.finish_all(workers, self.archive(again.grpc, "archiver_again"))

    def test_names_what_is_no_archive(self):
        space = self.workspace
        for folder in ("absent", "model"):
            (space.folder / "model").mkdir(exist_ok=True)
            said = space.distroctl("run", "restore", "--archive", space.folder / folder, "--data_dir", space.data_dir, code=2)
            self.assertIn("holds no copy of a run", said)
        self.assertFalse(space.data_dir.exists())


class RoundLinesTest(ProcessTest):
    def lines(self, path):
        text = path.read_text()
        self.assertTrue(text.endswith("\n"), "the last line is whole")
        return [json.loads(line) for line in text.splitlines()]

    def test_goes_on_after_kill(self):
        space = self.workspace
        aggregator = space.create_run(rounds=40, start_workers=1, evaluation_interval_rounds=10)
        archiver = space.start_archiver(aggregator.grpc)
        state = ("--state_dir", space.folder / "state", "--hold_back", "20ms")
        killed = space.start_worker("a", aggregator.grpc, *state, log_name="killed")
        aggregator.await_round(10)
        killed.kill()
        path = space.folder / "state" / "metrics.jsonl"
        with path.open("a") as torn:
            torn.write('{"time": 17')  # what a kill within a write leaves
        again = space.start_worker("a", aggregator.grpc, *state)
        self.finish([again])
        self.assertEqual(archiver.exit_code(), 0)
        lines = self.lines(path)
        self.assertEqual(lines[-1]["round"], 39)
        self.assertTrue({line["round"] for line in lines} >= {*range(8), *range(12, 40)}, "but what was under way at the kill")
        for line in lines:
            self.assertEqual((line["run"], line["rounds"]), (again.summary()["run_id"], 40))
            self.assertGreaterEqual(min(line["seconds"].values()), 0)
        self.assertGreater(lines[-1]["loss"], 0)
        self.assertGreater(lines[-1]["sent_bytes"], 0)
        self.assertIn("held_out_loss", next(line for line in lines if line["round"] == 29))
        replayed = self.lines(space.folder / "archive" / "metrics.jsonl")
        self.assertEqual([line["round"] for line in replayed], list(range(40)))
        self.assertEqual(replayed[-1]["state_hash"], again.summary()["state_hash"])
        self.assertEqual(replayed[-1]["included"], 1)

    def test_goes_to_file_of_flag(self):
        space = self.workspace
        aggregator = space.create_run(rounds=8)
        worker = space.start_worker("a", aggregator.grpc, "--metrics_file", space.folder / "mine.jsonl")
        self.finish([worker])
        self.assertEqual([line["round"] for line in self.lines(space.folder / "mine.jsonl")], list(range(8)))
        self.assertEqual(list(space.folder.glob("**/metrics.jsonl")), [], "without a state_dir there is no other")
        refused = space.start_worker("b", aggregator.grpc, "--metrics_file", space.folder / "absent" / "x")
        self.assertEqual(refused.exit_code(), 2)
        self.assertIn("--metrics_file", refused.log())


if __name__ == "__main__":
    processes.main()
