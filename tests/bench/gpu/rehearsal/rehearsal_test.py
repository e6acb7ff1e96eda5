"""bench/gpu/first_day in a root with the software of a machine that has a GPU, and no GPU: a stand-in of nvidia-smi, and a PyTorch
that says it has one. Every step that needs a GPU fails. What is seen: that the programs start there, that a call does the parts in
their order as far as its time allows, and that the next one goes on."""
import json
import re
import subprocess

import bare_root
import pytest
import wheel_test
from conftest import SOURCE

import parts

STAND_IN = SOURCE / "tests/bench/gpu/rehearsal/stand_in"
FIRST_DAY = SOURCE / "bench/gpu/first_day"
PARTS = [part.name for part in parts.PARTS]
H100 = "NVIDIA H100 80GB HBM3"


class Machine:
    """The root, and how first_day is called there."""

    def __init__(self, root, archive):
        self.root, self.archive = root, archive
        self.python = wheel_test.install_torch(root)
        root.pip(self.python, "install", "numpy")
        for shown in (SOURCE / "bench", SOURCE / "examples", SOURCE / "tests", SOURCE / "CMakeLists.txt", archive):
            root.bind(shown)
        self.results = root.folder / "results"

    def call(self, *arguments, gpu=H100):
        """Status and output."""
        command = self.root.command(self.python, "-B", FIRST_DAY, "run", "--archive", self.archive, "--out", "/results", *arguments,
                                    environment={"PATH": f"{STAND_IN}:/usr/bin:/bin", "PYTHONPATH": str(STAND_IN), "GPU_NAME": gpu})
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        print(done.stdout + done.stderr)
        return done.returncode, done.stdout + done.stderr

    def steps(self):
        """By part, in the order in which files were made: the steps that have an outcome."""
        files = sorted(self.results.glob("*.json"), key=lambda path: PARTS.index(path.stem))
        return {path.stem: json.loads(path.read_text())["steps"] for path in files}


@pytest.fixture(scope="module")
def machine(request, tmp_path_factory):
    with bare_root.root_of(bare_root.SUITES["noble"], request, tmp_path_factory) as root:
        yield Machine(root, request.config.getoption("--archive").resolve())


def parts_of(said):
    """The parts of the steps that ended, each once, in their order."""
    return list(dict.fromkeys(re.findall(r"^-- (\w+): ", said, re.M)))


def in_order(names):
    return names == sorted(names, key=PARTS.index)


def test_second_call_continues_first(machine):
    status, first = machine.call("--seconds", "60")
    assert status == 4 and "Traceback" not in first
    assert parts_of(first) == PARTS[:len(parts_of(first))] and "learning" not in parts_of(first)
    before = machine.steps()
    status, second = machine.call("--seconds", "330")
    assert status in (1, 4) and "Traceback" not in second
    assert in_order(parts_of(second)) and "learning" in parts_of(second)
    after = machine.steps()
    for part, steps in before.items():
        assert steps.items() <= after[part].items(), f"{part}: a step ran again"
    # No GPU: what could not run at all is a fault of the archive or of the steps. There is no compute-sanitizer.
    for part, steps in after.items():
        for name, outcome in steps.items():
            assert outcome["state"] != "hung", f"{part}: {name}"
            missing = re.search(r"No such file|error while loading shared libraries|not found", outcome["why"] + outcome["tail"])
            assert part == "sanitizers" or not missing, f"{part}: {name}: {outcome}"


def test_results_of_another_gpu_are_refused_before_anything_runs(machine):
    status, said = machine.call("--seconds", "330", gpu="NVIDIA H200")
    assert status == 2 and "results of different GPUs are not mixed" in said and "--out" in said
    assert parts_of(said) == []
