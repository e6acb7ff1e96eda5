"""The package by itself, without a run: its inner optimizer, its files, what it refuses."""
import copy
import json
import logging
import math
import pathlib
import tempfile
import threading
import unittest

import distro_train
import torch
from distro_train._errors import error_of
from distro_train._inner import RunOptimizer
from distro_train._state import InnerState
from plain import Plain

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

    def test_reset_forgets(self):
        optimizer = RunOptimizer(self.named, frozenset({"wide"}), CONFIG)
        self.steps(optimizer, [0])
        optimizer.reset()
        self.assertTrue(all(not part["state"] for part in optimizer.state_dict()["parts"]))
        self.steps(optimizer, [1])


class StateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_the_last_two_are_there(self):
        state = InnerState(self.folder, "run", 0)
        self.assertIsNone(state.load())
        for steps in (2, 4, 6):
            state.save(steps, {"at": steps})
        self.assertEqual({path.name for path in pathlib.Path(self.folder).iterdir()}, {"inner-4.pt", "inner-6.pt"})
        for steps in (4, 6):
            self.assertEqual(InnerState(self.folder, "run", steps).load(), {"at": steps})

    def test_what_does_not_belong_is_said(self):
        InnerState(self.folder, "run", 0).save(2, {})
        damaged = pathlib.Path(self.folder) / "inner-8.pt"
        damaged.write_bytes(b"PK")
        (pathlib.Path(self.folder) / "inner-9.pt").write_bytes((pathlib.Path(self.folder) / "inner-2.pt").read_bytes())
        for run, steps in (("other", 2), ("run", 3), ("run", 8), ("run", 9)):
            with self.assertLogs("distro_train", logging.WARNING) as logged:
                self.assertIsNone(InnerState(self.folder, run, steps).load())
            self.assertIn("begins anew", logged.output[0])


class RefusalTest(unittest.TestCase):
    def connect(self, model=None, **arguments):
        given = {"insecure": True, "name": "w", "fingerprint": "data", "timeout": 0.3, **arguments}
        return distro_train.connect(given.pop("url", NOBODY), model=model or Plain(), **given)

    def test_arguments(self):
        for arguments, what in (({"name": "A worker"}, "name"), ({"token": "a", "token_file": "b"}, "token, token_file"),
                                ({"insecure": False}, "--token_file"), ({"url": "ftp://x:1"}, "ftp"),
                                ({"state_interval_rounds": -1}, "state_interval_rounds"),
                                ({"model": Plain().double()}, "model.float"),
                                ({"model": Plain().requires_grad_(False)}, "no parameter that requires a gradient")):
            with self.assertRaisesRegex(ValueError, what):
                self.connect(**arguments)

    def test_nobody_answers(self):
        ticks = []
        stop = threading.Event()

        def tick():
            while not stop.wait(0.001):
                ticks.append(1)

        thread = threading.Thread(target=tick)
        thread.start()
        with self.assertRaisesRegex(distro_train.NotReachable, "0.3 s"):
            self.connect()
        stop.set()
        thread.join()
        self.assertGreater(len(ticks), 20, "other threads run while the C++ side is waited for")

    def test_a_state_folder_has_one_worker(self):
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
        self.assertIs(type(error_of("UNAUTHENTICATED", "", "why")), distro_train.NotAuthorized)
        self.assertIs(type(error_of("INTERNAL", "", "why")), distro_train.Error)


class InitialTest(unittest.TestCase):
    def test_a_folder_for_create(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "initial"
            distro_train.save_initial(Plain(), str(path), outside=Plain.OUTSIDE, config={"model_type": "plain"})
            config = json.loads((path / "config.json").read_text())
            self.assertEqual(config, {"model_type": "plain", "distro_outside": ["head.weight", "letters.weight"]})
            header = (path / "model.safetensors").read_bytes()[8:4096].decode(errors="ignore")
            self.assertIn('"memory.weight_hh_l0"', header)
            self.assertNotIn("frozen", header)
            with self.assertRaisesRegex(ValueError, "'lm_head'"):
                distro_train.save_initial(Plain(), str(path), outside=["lm_head"])

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


class HelpTest(unittest.TestCase):
    def test_everything_says_what_it_is(self):
        for name in distro_train.__all__:
            self.assertTrue(getattr(distro_train, name).__doc__, name)
        self.assertIn("run.batches(", distro_train.__doc__)


if __name__ == "__main__":
    unittest.main()
