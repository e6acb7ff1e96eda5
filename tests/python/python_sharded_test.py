"""A worker whose module lies in parts in several processes, by FSDP2 and tensor parallelism, beside one in C++ and one of a single process:
all have the same bits, also after a restart over other processes, and none hangs when another ends."""
import itertools
import json
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))
import processes  # noqa: E402
from processes import ProcessTest, Worker  # noqa: E402
from gpu import require_gpu  # noqa: E402
from page import row_of  # noqa: E402

PYTHON = os.environ["DISTRO_TORCH_PYTHON"]
os.environ["PYTHONPATH"] = os.environ["DISTRO_PYTHON_PACKAGE"]


class PythonShardedTest(ProcessTest):
    def setUp(self):
        super().setUp()
        self.workspace.model = {"num_key_value_heads": 2}
        self.starts = itertools.count()

    def create_run(self, **overrides):
        return self.workspace.create_run(**{"samples_per_worker": 4, "local_steps": 2, **overrides})

    def start_sharded(self, aggregator, *flags, dp=2, tp=1, name="sharded", of_rank=None):
        """dp x tp processes that are one worker."""
        return self.start_ranks("sharded.py", aggregator, dp * tp, "--dp", dp, "--tp", tp, *flags, name=name, of_rank=of_rank)

    def start_ranks(self, program, aggregator, count, *flags, name="sharded", of_rank=None):
        space, start = self.workspace, next(self.starts)
        ranks = []
        for rank in range(count):
            own = f"{name}-{start}-{rank}"
            command = [PYTHON, "-B", HERE / program, "--aggregator", aggregator.grpc, "--name", name, "--rank", rank, "--text", space.text,
                       "--config", space.folder / "config.json", "--store", space.folder / f"store-{start}", "--summary", space.folder / f"{own}.json", *flags, *(of_rank or {}).get(rank, ())]
            ranks.append(Worker(own, command, space.folder))
            space.processes.append(ranks[-1])
        return ranks

    def train_beside_a_worker_in_cpp(self, *flags, dp=2, tp=1, tolerance=1e-5, **overrides):
        aggregator = self.create_run(rounds=10, start_workers=2, min_workers=2, **overrides)
        native = self.workspace.start_worker("native", aggregator.grpc)
        first, *others = self.start_sharded(aggregator, *flags, dp=dp, tp=tp)
        self.finish([first, native])  # equal state hashes
        readings = first.summary()
        self.assertGreaterEqual(len(set(readings["hashes"])), 10)
        for other in others:
            self.assertEqual(other.exit_code(), 0, other.log())
            self.assertEqual(readings["hashes"], other.summary()["hashes"], "the same bits in all after every round")
            self.assertTrue(other.summary()["done"])
        self.assertAlmostEqual(readings["last_evaluation_loss"], native.summary()["last_evaluation_loss"], delta=tolerance)
        return [one.summary()["given"] for one in (first, *others)]

    def test_fsdp2(self):
        given = sum(self.train_beside_a_worker_in_cpp("--save", self.workspace.folder / "saved"), [])  # and compares what it saved
        self.assertEqual(len(given), 10 * 8)
        self.assertEqual(len(set(given)), 10 * 8, "a sample is read by one process")

    def test_with_signs(self):
        self.train_beside_a_worker_in_cpp("--signs", method="signs", local_steps=None, overlap=1)

    def test_fsdp2_beside_tensor_parallelism(self):
        given = self.train_beside_a_worker_in_cpp(dp=2, tp=2)
        self.assertEqual([given[0], given[2]], [given[1], given[3]], "processes of one part of the model's rows read the same")
        self.assertFalse(set(given[0]) & set(given[2]))

    def test_hsdp(self):
        given = sum(self.train_beside_a_worker_in_cpp("--replicas", 2, "--own", dp=4, samples_per_worker=8), [])
        self.assertEqual(len(set(given)), len(given), "a sample is read by one process")

    def test_pipeline(self):
        self.workspace.model |= {"num_hidden_layers": 2, "tie_word_embeddings": False}
        aggregator = self.create_run(rounds=12, start_workers=2, min_workers=2)
        native = self.workspace.start_worker("native", aggregator.grpc)
        state_dir = self.workspace.folder / "state"
        for stop in (4, 4):
            ranks = self.start_ranks("pipeline.py", aggregator, 2, "--state_dir", state_dir, "--stop_at", stop)
            for rank in ranks:
                self.assertEqual(rank.exit_code(), 0, rank.log())
                self.assertNotIn("begins anew", rank.log())
        readings = [rank.summary() for rank in ranks]
        self.assertEqual(readings[0]["given"], readings[1]["given"], "both read the same samples")
        self.assertTrue(all(one["moments"] > 0 for one in readings), "the inner optimizer continues")
        single = self.start_single(aggregator, state_dir)
        self.finish([single, native])  # equal state hashes
        self.assertNotIn("begins anew", single.log())

    def start_single(self, aggregator, state_dir, *flags, name="sharded"):
        """The same worker as one process with the whole module."""
        space = self.workspace
        command = [PYTHON, "-B", HERE / "train.py", "--aggregator", aggregator.grpc, "--name", name, "--text", space.text,
                   "--config", space.folder / "config.json", "--state_dir", state_dir, "--summary", space.folder / "single.json", *flags]
        space.processes.append(Worker("single", command, space.folder))
        return space.processes[-1]

    def create_frozen_run(self, **overrides):
        """Of a Llama of which only a part is trained."""
        space = self.workspace
        space.init_model()  # writes config.json
        script = (f"import sys; sys.path.insert(0, {str(HERE)!r}); import distro_train, json, llama; "
                  f"model = llama.freeze(llama.Llama(json.load(open({str(space.folder / 'config.json')!r})))); "
                  f"distro_train.save_initial(model, {str(space.folder / 'frozen')!r}, outside=['model.embed_tokens.weight', 'lm_head.weight'])")
        made = space.start("initial", [PYTHON, "-B", "-W", "error", "-c", script])
        self.assertEqual(made.exit_code(), 0, made.log())
        run = space.write_run(**{"workers": "python", "samples_per_worker": 4, "local_steps": 2, **overrides})
        return space.start_aggregator("--run", run, "--model", space.folder / "frozen")

    def expect_same_saved(self, ranks, single):
        for worker in (*ranks, single):
            self.assertEqual(worker.exit_code(), 0, worker.log())
        parts, whole = ((self.workspace.folder / name / "model.safetensors").read_bytes() for name in ("saved-parts", "saved-whole"))
        self.assertEqual(parts, whole, "with what is frozen and with buffers")
        self.assertIn(b"mlp.up_proj", whole)
        self.assertIn(b".seen", whole)

    def test_frozen_parts(self):
        aggregator = self.create_frozen_run(rounds=10, start_workers=2, min_workers=2)
        ranks = self.start_sharded(aggregator, "--frozen", 0, "--save", self.workspace.folder / "saved-parts", dp=2, tp=2)
        single = self.start_single(aggregator, self.workspace.folder / "state", "--frozen", "--folder", self.workspace.folder / "saved-whole",
                                   name="single")
        self.expect_same_saved(ranks, single)

    def test_frozen_parts_of_a_pipeline(self):
        self.workspace.model |= {"num_hidden_layers": 2, "tie_word_embeddings": False}
        aggregator = self.create_frozen_run(rounds=10, start_workers=2, min_workers=2)
        ranks = self.start_ranks("pipeline.py", aggregator, 2, "--frozen", "--save", self.workspace.folder / "saved-parts")
        single = self.start_single(aggregator, self.workspace.folder / "state", "--frozen", "--folder", self.workspace.folder / "saved-whole",
                                   name="single")
        self.expect_same_saved(ranks, single)

    def test_other_buffer_in_one_process(self):
        ranks = self.start_sharded(self.create_frozen_run(), of_rank={0: ("--frozen", 0), 1: ("--frozen", 1)})
        for rank in ranks:
            self.assertEqual(rank.exit_code(), 5, rank.log())
            self.assertIn("OtherModel: 'model.layers.0.seen' differs: it has other values", rank.log())

    def test_on_a_gpu_beside_a_worker_in_cpp(self):
        require_gpu(self, PYTHON)
        self.train_beside_a_worker_in_cpp("--device", "cuda", dp=1, tolerance=0.05)

    def test_restarts_over_other_processes(self):
        aggregator = self.create_run(rounds=16, start_workers=2, min_workers=2)
        native = self.workspace.start_worker("native", aggregator.grpc)
        state_dir = self.workspace.folder / "state"
        moments = []
        for dp, tp, replicas in ((2, 1, 1), (2, 2, 1), (4, 1, 2), (1, 2, 1)):
            ranks = self.start_sharded(aggregator, "--own", "--state_dir", state_dir, "--stop_at", 3, "--replicas", replicas, dp=dp, tp=tp)
            for rank in ranks:
                self.assertEqual(rank.exit_code(), 0, rank.log())
                self.assertNotIn("begins anew", rank.log())
            moments.append(ranks[0].summary()["moments"])
        self.assertEqual([begun > 0 for begun in moments], [False, True, True, True], "the inner optimizer continues")
        single = self.start_single(aggregator, state_dir)
        self.finish([single, native])  # equal state hashes
        self.assertNotIn("begins anew", single.log())
        self.assertRegex(single.out_path.read_text(), "begins moments=[1-9]")

    def test_takes_the_steps_of_a_whole_module(self):
        """Clipped local steps of one round, whose losses tell the gradients."""
        space = self.workspace
        run = space.write_run(rounds=1, warmup_rounds=0, samples_per_worker=4, local_steps=8, clip_norm=0.5)
        model, losses = space.init_model(), {}
        for name in ("whole", "parts"):
            aggregator = space.start_aggregator("--run", run, "--model", model, log_name=f"aggregator-{name}", data_dir=space.folder / f"data-{name}")
            if name == "whole":
                ranks = [self.start_single(aggregator, space.folder / "state", "--sgd")]
            else:
                ranks = self.start_sharded(aggregator, "--sgd", "--batch_size", "1", dp=2, tp=2)
            for rank in ranks:
                self.assertEqual(rank.exit_code(), 0, rank.log())
            told = [[float(loss) for loss in re.findall(r"step loss=(\S+)", rank.out_path.read_text())] for rank in ranks]
            parts = len(told[0]) // 8  # batches of a step
            losses[name] = [sum(sum(of_rank[step * parts:(step + 1) * parts]) for of_rank in told) / len(told) / parts for step in range(8)]
        self.assertLess(losses["whole"][-1], losses["whole"][0] - 0.1)
        for whole, parts in zip(losses["whole"], losses["parts"], strict=True):
            self.assertAlmostEqual(whole, parts, delta=2e-3)

    def expect_all_end(self, failing, *flags):
        aggregator = self.create_run(rounds=1000)
        ranks = self.start_sharded(aggregator, "--state_dir", self.workspace.folder / "state", *flags, of_rank={failing: ("--die_at", 7)})
        for process in ranks:
            self.assertNotEqual(process.exit_code(90), 0)
        self.assertIn("MemoryError", ranks[failing].log())
        self.assertTrue(list((self.workspace.folder / "state").glob("inner-*.pt")), "the last saved state stays")

    def test_four_kinds_of_workers_with_a_kill(self):
        """One in C++, one process, two with FSDP2, and four with tensor parallelism too; one of the two is killed, and they are four then."""
        aggregator = self.create_run(rounds=60, start_workers=4, min_workers=4)
        native = self.workspace.start_worker("native", aggregator.grpc)
        single = self.start_single(aggregator, self.workspace.folder / "state-single", name="single")
        meshes = self.start_sharded(aggregator, dp=2, tp=2, name="meshes")
        flags = ("--own", "--state_dir", self.workspace.folder / "state")
        first, killed = self.start_sharded(aggregator, *flags)
        processes.until(lambda: killed.alive() and killed.out_path.read_text().count("step") > 20, "some rounds are over")
        killed.kill()
        self.assertNotEqual(first.exit_code(60), 0)
        first, *others = self.start_sharded(aggregator, *flags, dp=2, tp=2)
        self.finish([first, native, single, meshes[0]])  # equal state hashes
        for rank in (*others, *meshes[1:]):
            self.assertEqual(rank.exit_code(), 0, rank.log())
        self.assertGreater(first.summary()["moments"], 0)
        self.assertNotIn("begins anew", first.log())

    def test_moves_values_and_gradients_of_parts(self):
        for name, flags in (("near", ()), ("apart", ("--apart",)), ("refused", ("--refused",))):
            moved = self.workspace.start(name, [PYTHON, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
                                                HERE / "parts.py", *flags])
            self.assertEqual(moved.exit_code(), 0, moved.log())

    def test_memory_is_what_the_run_says(self):
        space = self.workspace
        initial = space.folder / "initial"
        made = space.start("initial", [PYTHON, "-B", HERE / "memory.py", "--initial", initial])
        self.assertEqual(made.exit_code(), 0, made.log())
        run = space.write_run(workers="python", data_fingerprint="any", rounds=4, warmup_rounds=0, samples_per_worker=4, local_steps=2, start_workers=1,
                              min_workers=1, segment_blocks=4096)
        aggregator = space.start_aggregator("--run", run, "--model", initial)
        trained = space.start("memory", [PYTHON, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", HERE / "memory.py",
                                         "--aggregator", aggregator.grpc, "--out", space.folder])
        self.assertEqual(trained.exit_code(), 0, trained.log())
        first, second = (json.loads((space.folder / f"memory-{rank}.json").read_text()) for rank in range(2))
        copy, own = 4 * 48 * 1024 ** 2, 100e6  # of the whole module; of threads and buffers, for example of a segment
        self.assertEqual(first["said"], 3 * copy)
        self.assertTrue(3 * copy - own <= first["most"] <= 1.05 * 3 * copy + own, first)
        for shared, expected in ((first["shared"], copy), (second["shared"], copy // 2)):  # of rank 0; its parts of rank 1
            self.assertAlmostEqual(shared, expected, delta=8e6)  # the kernel maps pages beside those that are read
        self.assertLess(second["most"], copy // 2 + own, second)

    def test_rank_0_fails(self):
        self.expect_all_end(0)

    def test_rank_1_fails(self):
        self.expect_all_end(1)

    def test_rank_1_fails_and_run_is_not_closed(self):
        self.expect_all_end(1, "--bare")

    def test_all_end_when_one_is_stopped(self):
        aggregator = self.create_run(rounds=100000)
        groups = [self.start_sharded(aggregator, "--state_dir", self.workspace.folder / name, name=name) for name in ("first", "second")]
        stopped = [groups[0][0], groups[1][1]]
        processes.until(lambda: all(one.alive() and one.out_path.read_text().count("step") > 5 for one in stopped), "some rounds are over")
        for one in stopped:
            one.freeze()
        for other, rank in ((groups[0][1], 0), (groups[1][0], 1)):
            self.assertEqual(other.exit_code(60), 10, other.log())
            self.assertIn(f"rank {rank} of this worker has given no sign of life", other.log())
        self.assertTrue(list((self.workspace.folder / "second").glob("inner-*.pt")), "the state of the last save")
        for one in stopped:
            one.kill()

    def test_tensor_parallelism_without_data_mesh(self):
        for process in self.start_sharded(self.create_run(), "--no_data_mesh", tp=2):
            self.assertEqual(process.exit_code(), 1, process.log())
            message = re.search(r"ValueError: (parameter .*)$", process.log(), re.M)[1]
            self.assertEqual(row_of(message), "ValueError", message)


if __name__ == "__main__":
    processes.main()
