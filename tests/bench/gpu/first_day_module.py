"""bench/gpu for its tests: its modules are on the path, and first_day, which is a script, is a module too."""
import importlib.machinery
import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
GPU = ROOT / "bench/gpu"
SCRIPT = GPU / "first_day"
sys.path[:0] = [str(GPU), str(ROOT / "bench"), str(ROOT / "tests/integration")]

HARDWARE = {"gpu": "NVIDIA H100 80GB HBM3", "gpus": 1, "memory_mib": 81559, "driver": "580.1", "cpu": "a processor", "cores": 16}


def load():
    loader = importlib.machinery.SourceFileLoader("first_day", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("first_day", loader))
    loader.exec_module(module)
    return module


def outcome(*rows, state="passed", why="", seconds=1.0):
    """A step's outcome."""
    return {"state": state, "why": why, "status": 0, "seconds": seconds, "rows": list(rows), "tail": "", "stack": ""}


def document(part, steps, complete=True, **hardware):
    """A part's results."""
    return {"schema": 1, "part": part, "hardware": HARDWARE | hardware, "date": "2026-12-01", "version": "v1", "complete": complete, "steps": steps}
