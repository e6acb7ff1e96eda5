"""The package without a run: its inner optimizer, its files, its refusals."""
import contextlib
import copy
import dataclasses
import gc
import json
import logging
import math
import os
import pathlib
import pickle
import pty
import re
import subprocess
import sys
import tempfile
import termios
import threading
import types
import unittest
from unittest import mock

import distro_train
import torch
from distro_train._connect import _name_of_tokenizer
from distro_train._errors import error_of
from distro_train._held_out import HeldOut, parts_of_held_out
from distro_train._inner import Inner, RunOptimizer
from distro_train._library import load, trainable
from distro_train._module import Buffers, check, describe, entries
from distro_train._progress import Progress
from distro_train._ranks import Ranks
from distro_train._reader import Reader, check_fingerprint, check_is_a_map, parts_of_step, parts_of_steps
from distro_train._run import Run
from distro_train._session import Session
from distro_train._sharded import Sharded
from distro_train._state import InnerState
from distro_train._steps import LocalSteps
from page import classes_by_code, reasons_by_code, row_of
from plain import Plain
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

CONFIG = {"weight_decay": 0.1, "muon_momentum": 0.8, "adam_beta1": 0.9, "adam_beta2": 0.95, "adam_epsilon": 1e-8}
NOBODY = "127.0.0.1:1"  # a port on which nobody listens
RATES = (0.01, 0.02, 0.015)


def muon(x, gradients):
    """docs/algorithm.md, "Deltas", in f64."""
    buffer = torch.zeros_like(x)
    for rate, g in zip(RATES, gradients):
        buffer = CONFIG["muon_momentum"] * buffer + g
        u = g + CONFIG["muon_momentum"] * buffer
        turned = u.shape[0] > u.shape[1]
        o = (u.T if turned else u) / u.norm()
        for _ in range(5):
            a = o @ o.T
            o = 3.4445 * o + (-4.7750 * a + 2.0315 * a @ a) @ o
        scale = 0.2 * math.sqrt(max(u.shape))
        x = x - rate * (scale * (o.T if turned else o) + CONFIG["weight_decay"] * x)
    return x


def adamw(x, gradients):
    first, second = torch.zeros_like(x), torch.zeros_like(x)
    for step, (rate, g) in enumerate(zip(RATES, gradients), 1):
        first, second = 0.9 * first + 0.1 * g, 0.95 * second + 0.05 * g * g
        direction = (first / (1 - 0.9**step)) / ((second / (1 - 0.95**step)).sqrt() + CONFIG["adam_epsilon"])
        x = x - rate * (direction + (CONFIG["weight_decay"] if x.dim() > 1 else 0) * x)
    return x


class InnerTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        shapes = {"wide": (20, 50), "tall": (70, 30), "embed": (16, 8), "bias": (9,), "conv": (4, 3, 2)}
        self.named = {name: torch.nn.Parameter(torch.randn(shape)) for name, shape in shapes.items()}
        self.gradients = {name: [torch.randn(shape) for _ in RATES] for name, shape in shapes.items()}
        self.start = {name: value.detach().clone() for name, value in self.named.items()}

    def steps(self, optimizer, which):
        for index in which:
            for name, value in self.named.items():
                value.grad = self.gradients[name][index].clone()
            optimizer.set_rate(RATES[index])
            optimizer.step()

    def test_steps_are_those_of_the_algorithm(self):
        self.steps(RunOptimizer(self.named, frozenset({"wide", "tall", "conv"}), CONFIG), range(3))
        for name, value in self.named.items():
            by = muon if name in ("wide", "tall") else adamw
            wanted = by(self.start[name].double(), [g.double() for g in self.gradients[name]])
            moved = (wanted - self.start[name].double()).norm()
            error = (value.detach().double() - wanted).norm() / moved
            # bf16 inside Muon's iteration; f32 elsewhere.
            self.assertLess(error, 0.05 if by is muon else 1e-5, name)

    def test_state_goes_on(self):
        optimizer = RunOptimizer(self.named, frozenset({"wide"}), CONFIG)
        self.steps(optimizer, [0])
        half = {name: value.detach().clone() for name, value in self.named.items()}
        state = copy.deepcopy(optimizer.state_dict())
        self.steps(optimizer, [1, 2])
        end = {name: value.detach().clone() for name, value in self.named.items()}
        with torch.no_grad():
            for name, value in self.named.items():
                value.copy_(half[name])
        later = RunOptimizer(self.named, frozenset({"wide"}), CONFIG)
        later.load_state_dict(state)
        self.steps(later, [1, 2])
        for name, value in self.named.items():
            self.assertTrue(torch.equal(value, end[name]), name)
        with self.assertRaisesRegex(ValueError, "other parts"):
            RunOptimizer(self.named, frozenset(), CONFIG).load_state_dict(state)

    def test_refuses_scheduler(self):
        optimizer = RunOptimizer(self.named, frozenset({"wide"}), CONFIG)
        self.steps(optimizer, [0])
        later = RunOptimizer(self.named, frozenset({"wide"}), CONFIG)
        later.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        self.steps(later, [1])  # its own rate goes on
        later.param_groups[-1]["lr"] /= 2
        with self.assertRaisesRegex(ValueError, r"the rate was set to 0.01, and run.json decides it.*Optimizer\(run, inner\)"):
            self.steps(later, [2])

    def test_reset_forgets(self):
        optimizer = RunOptimizer(self.named, frozenset({"wide"}), CONFIG)
        self.steps(optimizer, [0])
        optimizer.reset()
        self.assertTrue(all(not part["state"] for part in optimizer.state_dict()["parts"]))
        self.steps(optimizer, [1])


class LocalStepsTest(unittest.TestCase):
    def test_counts_finite_steps(self):
        steps = LocalSteps([0.1, 0.2, 0.3, 0.4], 1.0, math.inf)
        self.assertEqual(steps.outcome(), (0, 0, 0, 0))
        for loss, norm, outcome in ((math.nan, 7.0, None), (5.0, math.inf, (5.0, math.inf, 2, 2)), (2.0, 3.0, (2.0, 3.0, 3, 2)),
                                    (9.0, math.nan, (2.0, 3.0, 4, 3))):
            self.assertEqual(steps.rate, (steps.taken + 1) / 10)
            self.assertEqual(steps.count(loss, norm), steps.taken < 4)
            if outcome is not None:
                self.assertEqual(steps.outcome(), outcome)
        mean = LocalSteps([0.1] * 2, 1.0, math.inf)
        self.assertEqual([mean.count(2.0, 1.0), mean.count(3.0, 4.0), mean.outcome()], [True, False, (2.5, 4.0, 2, 0)])

    def test_takes_as_many_as_fit_into_the_window(self):
        for duration, fit in ((1.0, 4), (3.0, 3), (5.0, 2), (5.5, 1), (20.0, 1)):
            with mock.patch("time.monotonic", side_effect=[100 + duration * step for step in range(9)]):
                steps = LocalSteps([0.1] * 4, 1.0, 10.0)
                while steps.count(1.0, 1.0):
                    pass
            self.assertEqual(steps.taken, fit, duration)


class Native:
    """The C++ side, with requests as written down. A gradient's norm is that of the first parameter."""

    def __init__(self, parameters, requests):
        self.parameters = parameters
        self.requests = list(requests)
        self.answers = []
        self.shown = 0

    def wait(self, milliseconds):
        return self.requests.pop(0) if self.requests else ("end", [], 0.0, 0.0, 0)

    def take_log(self):
        return []

    def answer(self, *answer):
        self.answers.append(answer)

    close = answer

    def ending(self):
        return "OK", "", ""

    def clip_gradients(self, clip_norm):
        if any(parameter.grad.is_sparse for parameter in self.parameters):
            return "INVALID_ARGUMENT", "", "its gradient is sparse", 0.0
        return "OK", "", "", self.parameters[0].grad.norm().item()

    def show_masters(self):
        self.shown += 1
        return "OK", "", ""


ROUND = ("round", [0.5, 0.25, 0.125], 1.0, math.inf, 0)


class SessionTest(unittest.TestCase):
    def setUp(self):
        self.parameter = torch.nn.Parameter(torch.zeros(1))

    def begin(self, *requests, inner=None, alive=lambda: None):
        """In the first of these requests."""
        self.native = Native([self.parameter], requests)
        session = Session(self.native, None, alive)
        session.attach(Inner(inner or torch.optim.SGD([self.parameter], lr=1.0)))
        session.answer()
        return session

    def step(self, session, gradient, loss=1.0):
        self.parameter.grad = torch.tensor([gradient])
        return session.step(loss)

    def test_answers_once_a_round(self):
        session = self.begin(ROUND, ("", [], 0.0, 0.0, 0), ROUND)
        asked = [self.step(session, gradient, loss) for gradient, loss in ((1.0, 4.0), (math.nan, 9.0), (2.0, 6.0), (3.0, 1.0))]
        self.assertEqual(asked, ["", "", "round", ""])
        self.assertEqual(self.native.answers, [(5.0, 2.0, 3, 1)])
        self.assertEqual((self.parameter.item(), self.native.shown), (-6.0, 3), "nothing of the second step, which was not finite")
        session.close()
        self.assertEqual(self.native.answers[1:], [(1.0, 3.0, 1, 0)], "of the open round")

    def test_drops_steps_of_open_round(self):
        session = self.begin(ROUND, ("save", [], 0.0, 0.0, 3))
        session._state = mock.Mock()
        self.step(session, 1.0)
        with self.assertLogs("distro_train", logging.ERROR):
            session.close(hand_in=False, keep=False)
        session._state.save.assert_not_called()
        self.assertEqual(self.native.answers, [(0.0, 0.0, 0, 0), (0.0, 0.0, 0, 0)])

    def test_has_rates_of_run(self):
        config = {**CONFIG, "weight_decay": 0.0}
        inner = RunOptimizer({"p": self.parameter}, frozenset(), config)
        session = self.begin(ROUND, inner=inner)
        rates = []
        for gradient in (1.0, math.inf, 1.0):
            self.step(session, gradient)
            rates.append(inner.param_groups[0]["lr"])
        self.assertEqual(rates, [0.5, 0.5, 0.125], "that of a skipped step is left out")

    def test_hands_in_nothing_of_answered_round(self):
        session = self.begin(("round", [0.5], 1.0, math.inf, 0))
        self.assertEqual(self.step(session, 1.0), "end")
        session.close()
        self.assertEqual(self.native.answers, [(1.0, 1.0, 1, 0), (0.0, 0.0, 0, 0)])

    def test_resets_and_saves_between_rounds(self):
        inner = torch.optim.SGD([self.parameter], lr=1.0, momentum=0.5)
        session = self.begin(ROUND, ("reset", [], 0.0, 0.0, 0), ("save", [], 0.0, 0.0, 3), ROUND, inner=inner)
        with self.assertLogs("distro_train", logging.WARNING):
            for gradient in (1.0, 1.0, 1.0):
                asked = self.step(session, gradient)
        self.assertEqual((asked, len(inner.state)), ("round", 0))
        self.assertEqual(self.native.answers[1:], [(0.0, 0.0, 0, 0), (1.0, 0.0, 0, 0)])

    def test_is_alive_while_a_disk_is_slow(self):
        alive = threading.Event()
        session = self.begin(ROUND, ("save", [], 0.0, 0.0, 3), ROUND, ("save", [], 0.0, 0.0, 6), alive=alive.set)

        def slow(*_):
            alive.clear()
            if not alive.wait(5):
                raise OSError("no sign of life")

        session._state = mock.Mock(save=slow, load=slow)
        for gradient in (1.0, 1.0, 1.0):
            self.step(session, gradient)
        session.attach(session._inner, waited_for=True)
        session.close(hand_in=False)
        self.assertEqual(self.native.answers[1::2], [(1.0, 0.0, 0, 0)] * 2, "both were kept")

    def test_saves_while_the_interpreter_ends(self):
        program = ("import atexit; from unittest.mock import Mock; from distro_train._session import Session; "
                   "session = Session(Mock(), None, Mock()); session._inner = session._state = Mock(); "
                   "atexit.register(lambda: print(session._keep(3), session._state.save.call_count))")
        done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True)
        self.assertEqual((done.stdout, done.stderr), ("1.0 1\n", ""))

    def test_with_signs_each_step_ends_a_round(self):
        self.native = Native([self.parameter], [("round", [0.0], 0.0, math.inf, 0)] * 2)
        session = Session(self.native, None, lambda: None)
        session.attach(None)
        session.answer()
        self.assertEqual(session.step(3.0), "round")
        self.assertEqual(self.native.answers, [(3.0, 0.0, 0, 0)])

    def test_raises_error_of_gradients(self):
        session = self.begin(ROUND)
        self.parameter.grad = torch.zeros(1).to_sparse()
        with self.assertRaisesRegex(distro_train.Error, "sparse"):
            session.step(1.0)


class RunTest(unittest.TestCase):
    """The rounds of a program, over a session that asks what is written down."""

    def begin(self):
        self.model = torch.nn.Linear(1, 1, bias=False)
        self.session = mock.Mock(masters=dict, **{
            "progress.return_value": "round 1/2", "join.return_value": ("joined", {"module": "", "config": {"samples_per_worker": 2}, "run_id": "r", "muon": []}),
            "samples.return_value": ([[0, 1], [2, 3], [4, 5]], list(range(8)), None), "held_out.return_value": (9, 1)})
        run = Run(self.session, Ranks(alone=True), self.model, dict(self.model.named_parameters()), None, None, None, None, None)
        self.addCleanup(run.close)
        run.begin(None)
        run.attach(None)
        self.given = []
        return run

    def steps(self, batches, run, count=99):
        """Takes so many steps, as a program."""
        for _, batch in zip(range(count), batches):
            self.given.append(batch)
            self.model(torch.ones(1)).backward()
            run.take(3.0)
            self.assertIsNone(self.model.weight.grad)

    def test_dropped_without_closing_leaves_the_other_processes(self):
        ranks, model = mock.Mock(spec=Ranks), Plain()
        run = Run(None, ranks, model, dict(model.named_parameters()), None, None, None, None, None)
        ranks.close.assert_not_called()
        del run
        gc.collect()
        ranks.close.assert_called_once_with()

    def test_takes_steps_of_rounds(self):
        run = self.begin()
        self.session.answer.side_effect = ["round"]
        self.session.step.side_effect = ["", "", "round", "", "end"]  # the second round's window ends
        self.steps(run.slots(10), run)
        self.assertEqual(self.given, [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3]])
        self.assertEqual((self.session.samples.call_count, run.done), (2, True))

    def test_begins_a_step_again_without_the_gradients_of_one_that_was_cut_off(self):
        run = self.begin()
        self.session.answer.side_effect = ["round"]
        seen = []
        self.session.step.side_effect = lambda loss: seen.append(self.model.weight.grad.clone()) or "end"
        for _ in zip(range(1), run.slots(10)):
            self.model(torch.ones(1)).backward()
        self.steps(run.slots(10), run)
        self.assertEqual((self.given, seen), ([[0, 1]], [torch.ones(1, 1)]))

    def test_goes_on_in_the_middle_of_a_round(self):
        run = self.begin()
        self.session.answer.side_effect = ["round"]
        self.session.step.side_effect = ["", "", "end"]
        self.steps(run.slots(10), run, 1)
        self.steps(run.slots(10), run)
        self.assertEqual(self.given, [[0, 1], [2, 3], [4, 5]])

    def test_ends_where_a_step_fails_or_the_run_is_closed(self):
        run = self.begin()
        self.session.answer.side_effect = ["round"]
        self.session.step.side_effect = distro_train.Error("why")
        batches = run.slots(10)
        with self.assertRaisesRegex(distro_train.Error, "why"):
            self.steps(batches, run)
        self.assertEqual((list(batches), run.done), ([], False))
        run = self.begin()
        self.session.answer.side_effect = ["round"]
        self.session.step.side_effect = [""]
        batches = run.slots(10)
        self.steps(batches, run, 1)
        run.close()
        self.assertEqual((list(batches), run.done), ([], False))

    def test_keeps_gradient_while_it_evaluates(self):
        """With signs and overlap 1 the C++ side reads it afterwards."""
        run = self.begin()
        self.session.answer.side_effect = ["round", "end"]
        self.session.step.side_effect = ["evaluate"]
        seen = []
        self.steps(run.batches(range(10), torch.tensor, held_out_loss=lambda batch: seen.append(self.model.weight.grad) or 2.0), run)
        self.assertEqual(seen, [torch.ones(1, 1)])
        self.assertEqual(self.session.answer.call_args.args, (2.0,))


class StateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_keeps_last_two(self):
        state = InnerState(self.folder, "run", 0)
        self.assertIsNone(state.load())
        for steps in (2, 4, 6):
            state.save(steps, {"at": steps})
        self.assertEqual({path.name for path in pathlib.Path(self.folder).iterdir()}, {"inner-4.pt", "inner-6.pt"})
        for steps in (4, 6):
            self.assertEqual(InnerState(self.folder, "run", steps).load(), {"at": steps})

    def test_raises_oserror_on_full_disk(self):
        broken = RuntimeError("unexpected pos 704 vs 598")  # what torch.save makes of ENOSPC
        with mock.patch("torch.save", side_effect=broken), self.assertRaises(OSError):
            InnerState(self.folder, "run", 0).save(2, {})
        self.assertEqual(list(pathlib.Path(self.folder).iterdir()), [])

    def test_says_what_does_not_belong(self):
        InnerState(self.folder, "run", 0).save(2, {})
        damaged = pathlib.Path(self.folder) / "inner-8.pt"
        damaged.write_bytes(b"PK")
        (pathlib.Path(self.folder) / "inner-9.pt").write_bytes((pathlib.Path(self.folder) / "inner-2.pt").read_bytes())
        for run, steps in (("other", 2), ("run", 3), ("run", 8), ("run", 9)):
            with self.assertLogs("distro_train", logging.WARNING) as logged:
                self.assertIsNone(InnerState(self.folder, run, steps).load())
            self.assertIn("begins anew", logged.output[0])


    def test_refuses_links_and_pipes(self):
        folder = pathlib.Path(self.folder)
        victim = folder / "victim"
        victim.write_bytes(b"theirs")
        (folder / "inner-2.pt.tmp").symlink_to(victim)
        InnerState(self.folder, "run", 0).save(2, {"at": 2})
        self.assertEqual(victim.read_bytes(), b"theirs")
        self.assertEqual(InnerState(self.folder, "run", 2).load(), {"at": 2})
        os.mkfifo(folder / "inner-3.pt")
        with self.assertLogs("distro_train", logging.WARNING) as logged:
            self.assertIsNone(InnerState(self.folder, "run", 3).load())
        self.assertIn("is not a regular file", logged.output[0])

    def test_names_tokenizer_by_file_or_digits(self):
        self.assertEqual(_name_of_tokenizer("AB" * 32), "ab" * 32)
        pipe = pathlib.Path(self.folder) / "tokenizer.json"
        os.mkfifo(pipe)
        with self.assertRaisesRegex(ValueError, "is not a regular file"):
            _name_of_tokenizer(str(pipe))


class Letters:
    """Samples that can be held up, and fail."""

    def __init__(self, size=100):
        self.size = size
        self.read = []
        self.threads = set()
        self.go = threading.Semaphore(0)

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        self.threads.add(threading.current_thread().name)
        if not self.go.acquire(timeout=60):
            raise TimeoutError
        if index >= 90:
            raise IndexError(f"sample {index}")
        self.read.append(index)
        return index


class ReaderTest(unittest.TestCase):
    def setUp(self):
        self.letters = Letters()
        self.reader = Reader(self.letters, list, torch.device("cpu"))
        self.addCleanup(self.letters.go.release, 1000)
        self.addCleanup(self.reader.__exit__, None, None, None)

    def await_all_begun(self):
        self.reader._thread.submit(int).result()  # behind them

    def test_reads_ahead(self):
        self.reader.expect([[1, 2], [3, 4], [5, 6]])
        self.letters.go.release(6)
        self.await_all_begun()
        self.assertEqual(self.letters.read, [1, 2, 3, 4, 5, 6], "nothing was taken yet")
        self.letters.go.release(2)
        self.assertEqual([self.reader.take(batch) for batch in ([1, 2], [3, 4], [5, 6], [7, 8])],
                         [[1, 2], [3, 4], [5, 6], [7, 8]])
        self.assertEqual((self.reader.taken, self.reader.ahead), (4, 3))
        self.assertEqual({name.split("_")[0] for name in self.letters.threads}, {"distro-train-reader"})

    def test_is_bounded(self):
        self.letters.go.release(1000)
        self.reader.expect([[i] for i in range(50)])
        self.reader.take([0])
        self.reader.take([1])
        self.await_all_begun()
        self.assertEqual(self.letters.read, list(range(10)), "two that were taken and eight")

    def test_drops_unwanted_samples(self):
        self.reader.expect([[1], [2], [3]])  # the thread is held up in the first
        self.reader.expect([[7], [8]])
        self.letters.go.release(100)
        self.assertEqual([self.reader.take([9]), self.reader.take([7]), self.reader.take([8])], [[9], [7], [8]])
        self.assertNotIn(3, self.letters.read)

    def test_raises_error_where_sample_is_taken(self):
        self.reader.expect([[1], [95], [2]])
        self.letters.go.release(100)
        self.assertEqual(self.reader.take([1]), [1])
        with self.assertRaisesRegex(IndexError, "sample 95"):
            self.reader.take([95])
        self.assertEqual(self.reader.take([2]), [2])

    def test_uses_stream_of_program(self):
        used = []
        with mock.patch("torch.accelerator.current_stream", lambda device: f"stream of {device}"), \
                mock.patch("torch.accelerator.set_stream", lambda stream: used.append((threading.current_thread(), stream))), \
                Reader(range(9), lambda batch: threading.current_thread(), torch.device("cuda:1")) as reader:
            thread = reader.take([4])
        self.assertEqual(used, [(thread, "stream of cuda:1")])

    def test_processes_share_a_step(self):
        self.assertEqual(parts_of_step(range(8), 0, 1, None), [list(range(8))])
        self.assertEqual(parts_of_step(range(8), 1, 2, 2), [[4, 5], [6, 7]])
        self.assertEqual(parts_of_steps(range(11), 4, 1, 2, None), [[2, 3], [6, 7]])
        with self.assertRaisesRegex(ValueError, "3 processes"):
            parts_of_step(range(8), 0, 3, None)
        with self.assertRaisesRegex(ValueError, "batch_size: 3") as raised:
            parts_of_step(range(8), 0, 1, 3)
        self.assertEqual(row_of(str(raised.exception)), "ValueError")


class HeldOutTest(unittest.TestCase):
    def test_processes_share_the_samples_in_as_many_batches_each(self):
        shared = [parts_of_held_out(90, 10, 4, rank, 2) for rank in (0, 1)]
        self.assertEqual([[(list(batch), share) for batch, share in parts] for parts in shared],
                         [[([90, 91, 92, 93], 0.4), ([98, 99], 0.2)], [([94, 95, 96, 97], 0.4), ([90, 91, 92, 93], 0.0)]])

    def test_restores_mode_of_module(self):
        model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Dropout(0.9), torch.nn.BatchNorm1d(1))
        model[2].eval()  # as a program that fine-tunes may want it

        def loss(batch):
            self.assertFalse(model.training or model[1].training or torch.is_grad_enabled())
            return torch.tensor(batch, dtype=torch.float64).mean()

        with Reader(range(100), list, torch.device("cpu")) as reader:
            mean = HeldOut(model, loss, reader, parts_of_held_out(90, 10, 4, 0, 1)).evaluate()
            self.assertAlmostEqual(mean, 94.5, msg="of the samples, not of the batches")
            self.assertEqual([module.training for module in model.modules()], [True, True, True, False])
            with self.assertRaises(ZeroDivisionError):
                HeldOut(model, lambda batch: 1 / 0, reader, parts_of_held_out(90, 10, 4, 0, 1)).evaluate()
            self.assertEqual([module.training for module in model.modules()], [True, True, True, False])


class LibraryTest(unittest.TestCase):
    def test_refuses_other_pytorch(self):
        for version in ("2.9.1", "2.16.0a0+git1234567", "3.0.0"):
            with mock.patch("torch.__version__", version), \
                    self.assertRaisesRegex(ImportError, rf"is for PyTorch (2\.10 to 2\.12|2\.13 to 2\.15), and this is {re.escape(version)}: pip install"):
                load()
        with mock.patch("torch.ops.load_library", mock.Mock(side_effect=OSError("libprotobuf.so.32: cannot open"))), \
                self.assertRaisesRegex(ImportError, rf"and this is {re.escape(torch.__version__)}; its library does not load: libprotobuf"):
            load()


class ModelTest(unittest.TestCase):
    def test_wrapped_modules_are_the_one_inside(self):
        plain = Plain()
        names, parameters = trainable(plain)
        compiled = torch.compile(plain, backend="eager")
        compiled_inside = Plain()
        compiled_inside.head = torch.compile(compiled_inside.head, backend="eager")
        inside_names, inside = trainable(compiled)
        self.assertEqual(inside_names, names)
        self.assertTrue(all(a is b for a, b in zip(inside, parameters)))
        self.assertEqual(trainable(compiled_inside)[0], names)
        recomputed = Plain()
        recomputed.head = checkpoint_wrapper(recomputed.head)
        self.assertEqual(trainable(recomputed)[0], names)
        self.assertEqual(list(entries(recomputed)), list(entries(plain)))

    def test_entries_are_without_hooks(self):
        class Fused(torch.nn.Module):  # as torchtitan's projections
            def __init__(self):
                super().__init__()
                self.fused = torch.nn.Linear(4, 6)
                self.register_buffer("kept", torch.ones(2, requires_grad=True))
                self.register_buffer("not_kept", torch.ones(2), persistent=False)
                self.register_state_dict_post_hook(self.split)

            @staticmethod
            def split(_, state, prefix, __):
                state[f"{prefix}first"], state[f"{prefix}second"] = state.pop(f"{prefix}fused.weight").reshape(2, -1).contiguous()

        module = Fused()
        found = entries(module)
        self.assertEqual(list(found), ["kept", "fused.weight", "fused.bias"])
        self.assertIs(found["fused.weight"], module.fused.weight)

    def test_sharded_modules_are_refused_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
            self.addCleanup(torch.distributed.destroy_process_group)
            self.assertEqual(trainable(torch.nn.parallel.DistributedDataParallel(Plain()))[0], trainable(Plain())[0])
            import torch.distributed.fsdp as fsdp
            with self.assertRaisesRegex(ValueError, "FullyShardedDataParallel.*FSDP2"):
                trainable(fsdp.FullyShardedDataParallel(torch.nn.Linear(4, 4), sharding_strategy=fsdp.ShardingStrategy.NO_SHARD,
                                                        use_orig_params=True, device_id=torch.device("cpu")))
            sharded = torch.nn.Linear(4, 4)
            fsdp.fully_shard(sharded, mesh=torch.distributed.init_device_mesh("cpu", (1,)))
            self.assertEqual(trainable(sharded)[0], ["weight", "bias"])
            with self.assertRaisesRegex(ValueError, "'weight': lies in parts.*before fully_shard"):
                distro_train.save_initial(sharded, folder)
            with self.assertRaisesRegex(ValueError, "'weight': is bfloat16, and a module in parts.*MixedPrecisionPolicy"):
                changed = torch.nn.Linear(4, 4).bfloat16()
                fsdp.fully_shard(changed, mesh=torch.distributed.init_device_mesh("cpu", (1,)))
                Sharded(changed, dict(zip(*trainable(changed))), Ranks(alone=True))
            with self.assertRaisesRegex(ValueError, "nothing of this process's part is trained"):
                Sharded(changed, {}, Ranks(alone=True))

    def test_entries_of_parts_are_those_of_whole_module(self):
        whole = torch.nn.Module()
        whole.trained, whole.frozen, whole.tied = (torch.nn.Linear(*sizes) for sizes in ((3, 5), (5, 3), (5, 3)))
        whole.tied.weight = whole.frozen.weight
        for frozen in (whole.frozen, whole.tied):
            frozen.bfloat16().requires_grad_(False)
        for name, value in (("flag", torch.tensor(True)), ("none", torch.zeros(0)), ("counts", torch.arange(7))):
            whole.register_buffer(name, value)
        parts = copy.deepcopy(whole)
        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
            self.addCleanup(torch.distributed.destroy_process_group)
            import torch.distributed.fsdp as fsdp
            fsdp.fully_shard(parts, mesh=torch.distributed.init_device_mesh("cpu", (1,)))
            sharded = Sharded(parts, dict(zip(*trainable(parts))), Ranks(alone=True))
            sharded.gather()
            entries = sharded.entries()
            self.assertEqual(list(entries), list(whole.state_dict()))
            for name, value in whole.state_dict().items():
                self.assertEqual(entries[name].dtype, value.dtype)
                self.assertTrue(torch.equal(entries[name], value), name)
            self.assertIs(entries["tied.weight"], entries["frozen.weight"])
            self.assertIs(entries["trained.weight"], sharded.wholes["trained.weight"])
            parts.peft_config = {"default": None}
            adapted = Sharded(parts, dict(zip(*trainable(parts))), Ranks(alone=True)).entries()
            self.assertEqual(list(adapted), ["flag", "none", "counts", "trained.weight", "trained.bias"], "the base has what is frozen")


class ProgressTest(unittest.TestCase):
    def test_without_a_terminal_it_is_logged_now_and_then(self):
        progress = Progress()
        with self.assertLogs("distro_train", logging.INFO) as logged:
            for number in range(1, 9):
                progress.show(f"round {number}/9", last=False)
            progress.show("round 9/9", last=True)
            progress.close()
        self.assertEqual([record.getMessage() for record in logged.records], ["round 1/9", "round 9/9"])

    def test_on_a_terminal_it_is_one_line(self):
        shown = self.of_a_program_on_a_terminal(self.PROGRAM)
        self.assertEqual(shown, "\r\x1b[Kround 1/2\r\x1b[Kround 2/2\r\n")

    def test_shows_log_unless_program_does(self):
        program = ("import logging; from distro_train._progress import show_log; show_log(); "
                   "log = logging.getLogger('distro_train'); log.info('one'); logging.basicConfig(format='own %(message)s'); log.info('two')")
        done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True)
        self.assertEqual((done.stdout, done.stderr), ("", "distro_train: one\nown two\n"))
        self.assertEqual(self.of_a_program_on_a_terminal(program), "\r\x1b[Kdistro_train: one\r\nown two\r\n")

    def test_survives_closed_terminal(self):
        closed = mock.Mock(isatty=lambda: True, write=mock.Mock(side_effect=OSError(5, "Input/output error")))
        for stderr in (closed, None):  # None: as where it is closed at the start
            with mock.patch.object(sys, "stderr", stderr):
                progress = Progress()
                for last in (False, True):
                    progress.show("round 1/2", last)
                progress.close()

    PROGRAM = ("from distro_train._progress import Progress; shown = Progress(); shown.show('round 1/2', False); "
               "shown.show('too soon', False); shown.show('round 2/2', True); shown.close()")

    def of_a_program_on_a_terminal(self, program):
        """What it shows on stderr, a terminal of 24 lines of 100 columns."""
        ours, terminal = pty.openpty()
        self.addCleanup(os.close, ours)
        termios.tcsetwinsize(terminal, (24, 100))
        subprocess.run([sys.executable, "-B", "-c", program], stderr=terminal, check=True)
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: nobody has the terminal any more
            while part := os.read(ours, 65536):
                shown += part
        return shown.decode()


class RefusalTest(unittest.TestCase):
    def connect(self, **arguments):
        given = {"url": NOBODY, "insecure": True, "name": "w", "fingerprint": "data", "timeout": 0.3, "model": Plain(), **arguments}
        return distro_train.connect(**given)

    def invite(self, **changes):
        """The path of an invite."""
        lines = {"aggregator": NOBODY, "name": "w7", "role": "worker", "token": "x" * 43, **changes}
        file = tempfile.NamedTemporaryFile("w", suffix=".invite")
        self.addCleanup(file.close)
        file.write("".join(f"{line}\n" for line in ("distro-invite 1", *(f"{key} {value}" for key, value in lines.items()))))
        file.flush()
        return file.name

    def by_invite(self, **changes):
        return {"url": None, "name": None, "insecure": False, "invite": self.invite(**changes)}

    def test_arguments(self):
        for arguments, what in (({"name": "A worker"}, "name"), ({"token": "a", "token_file": "b"}, "token, token_file"),
                                ({"insecure": False}, "invite, token_file, or cert and key: one is required.*insecure=True"),
                                ({"url": "ftp://x:1"}, 'url: "ftp://x:1"'), ({"url": None}, "url: give.*invite"),
                                ({"name": None}, "name: give.*invite"), ({"ca": "ca.pem"}, "insecure=True: contradicts ca, cert"),
                                ({"insecure": False, "cert": "c.pem"}, "cert and key: give both or neither"),
                                ({**self.by_invite(), "name": "w"}, "name: w: the invite's token is that of w7: leave name out"),
                                (self.by_invite(role="viewer"), "invite: .*: is for the role viewer"),
                                ({"insecure": False, "invite": "none.invite"}, "invite: .*No such file"),
                                ({"state_interval_rounds": -1}, "state_interval_rounds"),
                                ({"mirrors": "http://m"}, "mirrors: 'http://m' is no list of URLs"),
                                ({"mirrors": b"http://m"}, "mirrors: b'http://m' is no list of URLs"),
                                ({"mirrors": [""]}, r"mirrors: \[''\] is no list of URLs"),
                                ({"mirrors": [None]}, r"mirrors: \[None\] is no list of URLs"),
                                ({"mirrors": ["http://a,http://b"]}, "is no list of URLs"),
                                ({"mirrors": ["http://m", "m"]}, "mirrors: m is not http"),
                                ({"fingerprint": ""}, "128 bytes"), ({"fingerprint": "x" * 129}, "128 bytes"),
                                ({"fingerprint": [1, 2]}, "None of a list is no text.*attribute `fingerprint`"),
                                ({"tokenizer": "none.json"}, "tokenizer: none.json: No such file.*SHA-256"),
                                ({"model": Plain().double()}, "model.float"),
                                ({"model": Plain().requires_grad_(False)}, "no parameter that requires a gradient")):
            with self.assertRaisesRegex(ValueError, what) as raised:
                self.connect(**arguments)
            self.assertNotIn("--", re.sub(r"distroctl invite .*", "", str(raised.exception)), "flags are of programs")
            if "model" in arguments:
                self.assertEqual(row_of(str(raised.exception)), "ValueError")

    def test_has_the_threads_of_processes_that_wait(self):
        def begun(*_):
            raise distro_train.Error(str(torch.get_num_threads()))

        own = torch.get_num_threads()
        self.addCleanup(torch.set_num_threads, own)
        for threads, cores, wanted in ((1, 8, 3), (2, 8, 6), (3, 8, 8), (4, 2, 4)):
            torch.set_num_threads(threads)
            ranks = mock.Mock(spec=Ranks, rank=0, sign_of_life=None, **{"gather.return_value": ["here", "here", "there", "here"]})
            with mock.patch("distro_train._connect.find_ranks", return_value=ranks), mock.patch("os.sched_getaffinity", return_value=range(cores)), \
                    mock.patch("distro_train._library.new_session", begun), self.assertRaisesRegex(distro_train.Error, f"^{wanted}$"):
                self.connect()
            self.assertEqual(torch.get_num_threads(), threads, "the program's own stay")

    def test_names_invite(self):
        for changes, kind, what in (({"expires": "2020-01-01T00:00:00Z"}, distro_train.NotAuthorized, "expired at 2020"),
                                    ({"data": "0" * 64}, distro_train.OtherData, "fingerprint: is data, and the invite is for a run on 000"),
                                    ({}, distro_train.NotReachable, "127.0.0.1:1: no connection: .*start the aggregator")):
            with self.assertRaisesRegex(kind, what) as raised:
                self.connect(**self.by_invite(**changes))
            self.assertNotIn("--", str(raised.exception).replace("--listen", ""))

    def test_matches_classes_of_page(self):
        classes, reasons = classes_by_code(), reasons_by_code()
        self.assertEqual(len(classes), 12)
        for code, name in classes:
            wanted = {"ValueError"} if code == 2 else {type(error_of("", reason, "")).__name__ for reason in reasons[code]}
            self.assertIn(name, wanted, code)

    def test_names_other_data_set(self):
        class Named(list):
            fingerprint = "one"

        check_fingerprint(Named(), "one")
        check_fingerprint(Named(), None)
        check_fingerprint([], "two")
        with self.assertRaisesRegex(ValueError, "'one' is not 'two'"):
            check_fingerprint(Named(), "two")

    def test_names_missing_temporary_folder(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, TMPDIR=f"{folder}/gone"):
            with self.assertRaisesRegex(distro_train.Error, "TMPDIR: make a temporary folder in .*/gone: No such file.*set TMPDIR"):
                self.connect()

    def test_ends_in_time(self):
        ticks = []
        stop = threading.Event()

        def tick():
            while not stop.wait(0.001):
                ticks.append(1)

        thread = threading.Thread(target=tick)
        thread.start()
        with self.assertRaisesRegex(distro_train.NotReachable, "within 0.3 s: .*127.0.0.1:1: no connection.*start the aggregator"):
            self.connect()
        stop.set()
        thread.join()
        self.assertGreater(len(ticks), 20, "other threads run while the C++ side is waited for")

    def test_names_used_state_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            errors = []

            def first():
                try:
                    self.connect(state_dir=folder, timeout=2)
                except distro_train.NotReachable:
                    pass
                except ValueError as error:
                    errors.append(error)

            threads = [threading.Thread(target=first) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(len(errors), 1)
            self.assertIn("state_dir", str(errors[0]))

    def test_errors_have_their_class_and_remedy(self):
        for reason, kind in (("other_run", distro_train.OtherRun), ("quarantined", distro_train.Quarantined),
                             ("diverged", distro_train.Diverged), ("too_slow", distro_train.TooSlow),
                             ("wrong_name", distro_train.NotAuthorized), ("version", distro_train.OtherVersion),
                             ("replaced", distro_train.Replaced), ("other_data", distro_train.OtherData)):
            error = error_of("FAILED_PRECONDITION", reason, "why")
            self.assertIs(type(error), kind)
            self.assertEqual(error.reason, reason)
            self.assertRegex(str(error), r"^why \(.+\)$")
            again = pickle.loads(pickle.dumps(error))  # another process of the worker hears it
            self.assertEqual((type(again), str(again), again.reason), (kind, str(error), reason))
        self.assertIs(type(error_of("UNAUTHENTICATED", "", "why")), distro_train.NotAuthorized)
        self.assertIs(type(error_of("INTERNAL", "", "why")), distro_train.Error)


class InitialTest(unittest.TestCase):
    def test_makes_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "initial"
            distro_train.save_initial(Plain(), str(path), outside=Plain.OUTSIDE, config={"model_type": "plain"})
            config = json.loads((path / "config.json").read_text())
            self.assertEqual(config, {"model_type": "plain", "distro_outside": ["letters.weight"]})
            described = json.loads((path / "distro_module.json").read_text())["trained"]
            self.assertEqual((described["letters.weight"], described["scale"]), ([256, 48], [1]))
            self.assertNotIn("frozen.weight", described)
            header = (path / "model.safetensors").read_bytes()[8:4096].decode(errors="ignore")
            self.assertIn('"memory.weight_hh_l0"', header)
            self.assertNotIn("frozen", header)
            with self.assertRaisesRegex(ValueError, "'lm_head'"):
                distro_train.save_initial(Plain(), str(path), outside=["lm_head"])
            with self.assertRaisesRegex(ValueError, "'frozen.weight'"):
                distro_train.save_initial(Plain(), str(path), outside=["frozen.weight"])

    def test_embedding_and_head_are_found(self):
        class Tied(Plain):  # as the models of transformers
            def __init__(self):
                super().__init__()
                self.config = types.SimpleNamespace(to_dict=lambda: {"model_type": "tied"})

            def get_output_embeddings(self):
                return self.head

        class Untied(Tied):
            def __init__(self):
                super().__init__()
                self.head = torch.nn.Linear(48, 256, bias=False)

        for model, outside, found in ((Plain(), [], ["letters.weight"]), (Tied(), [], ["letters.weight"]),
                                      (Untied(), [], ["head.weight", "letters.weight"]), (Tied(), ["head.weight"], ["letters.weight"]),
                                      (Plain(), ["mix.weight"], ["letters.weight", "mix.weight"])):
            with tempfile.TemporaryDirectory() as folder:
                distro_train.save_initial(model, f"{folder}/initial", outside=outside)
                config = json.loads(pathlib.Path(folder, "initial", "config.json").read_text())
            self.assertEqual(config.pop("distro_outside"), found)
            self.assertEqual(config, {"model_type": "tied"} if isinstance(model, Tied) else {})

    def test_fingerprint_is_of_tokens(self):
        with tempfile.TemporaryDirectory() as folder:
            texts = [pathlib.Path(folder) / name for name in ("a.txt", "b.txt", "c.txt")]
            for path, text in zip(texts, ("hello", "hello", "other")):
                path.write_text(text)
            a, b, c = (distro_train.fingerprint_of_tokens(str(path)) for path in texts)
            self.assertEqual(a, b)
            self.assertNotEqual(a, c)
            with self.assertRaises(ValueError):
                distro_train.fingerprint_of_tokens(str(pathlib.Path(folder) / "none.txt"))


class ModuleTest(unittest.TestCase):
    def refusal(self, change, description=None):
        """How a module is refused that was changed so."""
        other = Plain(seed=2)
        change(other)
        with self.assertRaises(distro_train.OtherModel) as raised:
            check(other, json.dumps(describe(Plain(), Ranks(alone=True))) if description is None else description, Ranks(alone=True))
        return str(raised.exception).removesuffix(f" ({distro_train.OtherModel.remedy})")

    def test_may_differ_only_in_what_is_trained(self):
        check(Plain(seed=2), json.dumps(describe(Plain(), Ranks(alone=True))), Ranks(alone=True))
        with torch.no_grad():
            other_values = self.refusal(lambda one: one.frozen.bias.fill_(1))
            self.assertEqual(other_values, "'frozen.bias' differs: it has other values than the run's")
            self.assertEqual(row_of(other_values), "OtherModel")
            self.assertIn("'norm.running_mean' differs", self.refusal(lambda one: one.norm.running_mean.fill_(1)))
        self.assertIn("'frozen.weight' differs: it is bfloat16 [48, 64], and the run's is float32 [48, 64]",
                      self.refusal(lambda one: one.frozen.bfloat16()))
        self.assertIn("'frozen.bias' is missing", self.refusal(lambda one: setattr(one.frozen, "bias", None)))
        self.assertIn("'more' is no part of the run's module", self.refusal(lambda one: one.register_buffer("more", torch.ones(1))))

    def test_adapters_are_compared(self):
        def adapted(**settings):
            module = Plain()
            module.peft_config = {"default": types.SimpleNamespace(to_dict=lambda: settings)}
            return module

        run = json.dumps(describe(adapted(r=4, target_modules={"a", "b"}, base_model_name_or_path="here"), Ranks(alone=True)))
        check(adapted(r=4, target_modules={"b", "a"}, base_model_name_or_path="there"), run, Ranks(alone=True))
        with self.assertRaisesRegex(distro_train.OtherModel, "adapter 'default': 'r' differs: it is 8, and the run's is 4") as raised:
            check(adapted(r=8, target_modules={"a", "b"}), run, Ranks(alone=True))
        self.assertEqual(row_of(str(raised.exception).removesuffix(f" ({distro_train.OtherModel.remedy})")), "OtherModel")

    def test_adapters_of_other_versions_of_peft_are_compared(self):
        @dataclasses.dataclass
        class Old:
            r: int = 8
            rates: dict = dataclasses.field(default_factory=dict)
            peft_version: str = "1"

            def to_dict(self):
                return dataclasses.asdict(self)

        @dataclasses.dataclass
        class New(Old):
            more: dict = dataclasses.field(default_factory=dict)
            peft_version: str = "2"

        def adapted(settings):
            module = Plain()
            module.peft_config = {"default": settings}
            return module

        def description(settings):
            return json.dumps(describe(adapted(settings), Ranks(alone=True)))

        for run, own in ((Old(r=4), New(r=4)), (New(r=4), Old(r=4)), (New(r=4, more={"x": 1}), New(r=4, more={"x": 1}, peft_version="3"))):
            check(adapted(own), description(run), Ranks(alone=True))
        for run, own, message in ((Old(r=4), New(), "'r' differs"), (New(), Old(r=4), "'r' differs"),
                                  (New(more={"x": 1}), Old(), "'more' is missing"),
                                  (Old(), New(more={"x": 1}), "'more' is not set in the run's module")):
            with self.assertRaisesRegex(distro_train.OtherModel, f"adapter 'default': {message}"):
                check(adapted(own), description(run), Ranks(alone=True))
        before = json.loads(description(Old(r=4)))  # as written by a package that compared all fields
        del before["defaults"]
        before["adapters"]["default"]["peft_version"] = "1"
        check(adapted(New(r=4)), json.dumps(before), Ranks(alone=True))

    def test_compares_what_each_process_has(self):
        class TwoRanks(Ranks):
            other = {}

            def gather(self, value):
                return [value, self.other]

        whole = Plain()
        whole.peft_config = {"default": types.SimpleNamespace(to_dict=lambda: {"r": 4})}
        described = describe(whole, Ranks(alone=True))
        run, ranks, stage = json.dumps(described), TwoRanks(alone=True), Plain()
        del stage.frozen
        rest = {name: described["rest"][name] for name in ("frozen.weight", "frozen.bias")}
        ranks.other = {"rest": rest, "adapters": described["adapters"], "defaults": {}}
        check(stage, run, ranks)  # together they have all
        for other, message in (({"rest": rest, "adapters": {}}, "adapter 'default': 'r' is missing"),
                               ({"rest": rest, "adapters": {"default": {"r": 8}}}, "adapter 'default': 'r' differs"),
                               ({"rest": {}, "adapters": described["adapters"]}, "'frozen.weight' is missing"),
                               ({"rest": rest | {"norm.running_mean": ["float32", [64], "0"]}, "adapters": described["adapters"]},
                                "'norm.running_mean' differs")):
            ranks.other = {**other, "defaults": {}}
            with self.assertRaisesRegex(distro_train.OtherModel, message):
                check(stage, run, ranks)

    def test_refuses_bad_description(self):
        whole = json.dumps(describe(Plain(), Ranks(alone=True)))
        for text in ("[]", "3", "{}", '{"rest": 3, "adapters": {}}', '{"rest": {}, "adapters": {"a": 3}}', "[" * 100000, whole[:-1],
                     '{"rest": {}, "adapters": {}, "defaults": {"a": 3}}'):
            self.assertIn("does not describe a module", self.refusal(lambda one: None, text))
        self.assertIn("differs", self.refusal(lambda one: None, whole.replace('"float32"', "null")))

    def test_says_what_is_not_compared(self):
        with self.assertLogs("distro_train", logging.WARNING) as logged:
            check(Plain(), "", Ranks(alone=True))
        self.assertIn("tensors of the module are not trained, such as", logged.output[0])
        with self.assertNoLogs("distro_train"):
            check(torch.nn.Linear(2, 2), "", Ranks(alone=True))

    def test_buffers_are_set_back(self):
        module = Plain()
        before = copy.deepcopy(module.state_dict())
        buffers = Buffers(module)
        with self.assertNoLogs("distro_train"):
            buffers.restore()
        with self.assertLogs("distro_train", logging.WARNING) as logged:
            for _ in range(2):
                module(torch.randint(256, (4, 9)))
                buffers.restore()
        self.assertEqual(len(logged.output), 1)
        self.assertIn("update_bn", logged.output[0])
        self.assertTrue(all(torch.equal(value, before[name]) for name, value in module.state_dict().items()))


class FingerprintTest(unittest.TestCase):
    def test_is_equal_for_equal_content(self):
        samples = [{"ids": [1, 2], "text": "a", "x": torch.ones(2)}, {"x": torch.zeros(2), "text": "b", "ids": [3]}]
        said = distro_train.fingerprint_of_dataset(samples)
        self.assertRegex(said, "^2-[0-9a-f]{64}$")
        self.assertEqual(distro_train.fingerprint_of_dataset(copy.deepcopy(samples)), said)
        self.assertEqual(distro_train.fingerprint_of_dataset([dict(reversed(sample.items())) for sample in samples]), said)

    def test_other_content_has_another(self):
        sets = ([1], [1.0], [True], ["1"], [b"1"], [None], [[1]], [1, 1], [], [[1, 2], 3], [[1], 2, 3], [{"a": 1}], [{"b": 1}],
                [torch.ones(2)], [torch.ones(2, 1)], [torch.ones(2, dtype=torch.bfloat16)], [torch.tensor(1)], ["a", ""], ["", "a"])
        self.assertEqual(len({distro_train.fingerprint_of_dataset(samples) for samples in sets}), len(sets))

    def test_is_the_same_with_every_version_of_numpy(self):
        """Which has its own repr of a float64, a float."""
        old, new = (type("float64", (float,), {"__repr__": lambda self, text=text: text})(1.5) for text in ("1.5", "np.float64(1.5)"))
        self.assertEqual(distro_train.fingerprint_of_dataset([new]), distro_train.fingerprint_of_dataset([old]))
        self.assertEqual(distro_train.fingerprint_of_dataset([1.5, True, 7]), "3-afcaaa77a910dc2005e8bd1600d6781af95db6877c7c47d2b067aa91b008e685")

    def test_names_what_has_no_content(self):
        with self.assertRaisesRegex(TypeError, r"dataset\[1\]: a Plain has no content"):
            distro_train.fingerprint_of_dataset([1, Plain()])

    def test_needs_length_and_index(self):
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter([1])

        for dataset, what in ((torch.utils.data.DataLoader([1]), r"is a DataLoader.*loader\.collate_fn"), (Stream(), "a Stream has no length"),
                              (iter([1]), "a list_iterator has no length"), ({1, 2}, "a set has no")):
            with self.assertRaisesRegex(TypeError, what) as raised:
                check_is_a_map(dataset)
            self.assertEqual(row_of(str(raised.exception)), "TypeError")
        for dataset in ([1], torch.utils.data.TensorDataset(torch.ones(2))):
            check_is_a_map(dataset)


class HelpTest(unittest.TestCase):
    def test_everything_says_what_it_is(self):
        for name in distro_train.__all__:
            self.assertTrue(getattr(distro_train, name).__doc__, name)
        self.assertIn("run.batches(", distro_train.__doc__)


if __name__ == "__main__":
    unittest.main()
