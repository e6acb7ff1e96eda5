"""The parts of the first GPU hour: each is a list of steps (steps.py), made when it is run."""
import dataclasses
import pathlib
import re
import subprocess
import sys

import machine
import results
from steps import AFTER_A_HANG, Step

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SMALL, LARGE = ROOT / "examples/llama_125m/config.json", ROOT / "examples/llama_1b2/config.json"
MODELS = {"125 M": (SMALL, 32, 1024), "1.2 B": (LARGE, 8, 2048)}  # configuration, sequences, positions

WATCHDOG = 120  # seconds of a test program
ON_THE_GPU = "--gtest_filter=*/cuda:CudaTest.*"
KERNEL_TESTS = ("cuda_test", "gpu_test", "compress_test", "apply_test", "elementwise_test", "enqueue_test", "apply_deltas_test",
                "compress_deltas_test", "feedback_deltas_test", "delta_backend_test", "float_environment_test")
GOLDEN_TESTS = ("golden_demo_test", "golden_distro_test", "golden_idct_test", "golden_delta_steps_test")
# Instrumented code is many times slower: arrays of a million elements are left to the tests above.
SMALL_SHAPES = ON_THE_GPU + "-CudaTest.*"
SANITIZED = tuple(name for name in KERNEL_TESTS if name not in ("cuda_test", "gpu_test"))  # gpu_test makes CUDA's errors on purpose
SANITIZERS = ("memcheck", "racecheck", "synccheck")


@dataclasses.dataclass(frozen=True)
class Context:
    """What steps are made from."""
    program: object  # the path of a program, by its name
    text: object     # makes a text to learn from, and returns its path
    package: object  # the folder with distro_train, the Python package; None without one
    part: object     # the stored document of a part, by its name; None where there is none
    seconds: float   # left for the part


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    what: str
    minutes: float   # that it usually takes
    steps: object    # Context -> list of Step


PYTHON_TEST = "PythonRunsTest.test_on_a_gpu_beside_a_worker_in_cpp"


def python(name, *arguments):
    return (sys.executable, "-B", HERE / name, *arguments)


def machine_steps(context):
    return [Step("machine", python("machine.py"), 60)]


def tests_of(program):
    """The names of a program's tests; none where it cannot say."""
    try:
        listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    names, suite = [], ""
    for line in listed.stdout.splitlines():
        word = line.partition("#")[0].rstrip()
        if re.fullmatch(r"\S+\.", word):
            suite = word
        elif line.startswith("  "):
            names.append(suite + word.strip())
    return names


def test_steps(context):
    """Kernels a program at a time. Ranks and nodes a test at a time, so that none runs with what an earlier one left in Torch's
    allocator: the first allocation is when the driver may wait for a GPU that waits for a peer."""
    steps = [Step(name, (context.program(name), ON_THE_GPU), WATCHDOG, tests=True) for name in KERNEL_TESTS]
    steps += [Step(name, (context.program(name), ON_THE_GPU, "--golden_dir", ROOT / "tests/golden"), WATCHDOG, tests=True)
              for name in GOLDEN_TESTS]
    for name in ("cuda_settings_test", "worker_gpu_test"):
        program = context.program(name)
        steps += [Step(f"{name} {test}", (program, f"--gtest_filter={test}"), WATCHDOG, tests=True)
                  for test in tests_of(program)] or [Step(name, (program,), WATCHDOG, tests=True)]
    return steps


def sanitizer_steps(context):
    sanitizer = machine.tool("compute-sanitizer") or "compute-sanitizer"
    return [Step(f"{tool} {name}", (sanitizer, "--tool", tool, "--error-exitcode", 86, context.program(name), SMALL_SHAPES), 150, tests=True)
            for tool in SANITIZERS for name in SANITIZED]


def kernel_steps(context):
    return [Step("ours", (context.program("gpu_kernels"), LARGE), 90), Step("pytorch", python("reference.py", "operations", LARGE), 90)]


def training_steps(context):
    steps = []
    for model, (config, sequences, positions) in MODELS.items():
        reference = python("reference.py", "training", config, "--batch", sequences, "--sequence", positions)
        steps += [Step(f"{model}, ours", (context.program("gpu_training"), config, sequences, positions), 75),
                  Step(f"{model}, eager", reference, 75),
                  Step(f"{model}, torch.compile", (*reference, "--compile"), 180)]
    return steps


def replica_steps(context):
    """Workers in C++ of both methods; with the package two Python programs on the GPU beside a worker in C++ on the CPU."""
    programs = context.program("distro-worker").parent
    steps = [Step(method, python("replicas.py", "--bin", programs, "--method", method, "--devices", "cuda,cpu"), 150)
             for method in ("deltas", "signs")]
    if context.package:
        environment = (f"DISTRO_TORCH_PYTHON={sys.executable}", f"DISTRO_PYTHON_PACKAGE={context.package}", "DISTRO_TEST_METHOD=deltas")
        binaries = [word for name in ("aggregator", "worker") for word in (f"--{name}", context.program(f"distro-{name}"))]
        steps.append(Step("Python programs", ("env", *environment, sys.executable, "-B", ROOT / "tests/python/python_runs_test.py", *binaries,
                                              "--distroctl", context.program("distroctl"), PYTHON_TEST), 150))
    return steps


LEARNING_METHODS = ("deltas", "signs")
START = 60  # seconds of a step of learning beside its training: the initial model, the aggregator, the workers' start
LEAST_TRAINING = 45


def seconds_of_learning(seconds, done):
    """Of each method: an equal share of the seconds that are left, or what the method that is done had."""
    had = [outcome["rows"][-1]["seconds"] for name, outcome in done.items() if name in LEARNING_METHODS and outcome["rows"]]
    share = int(seconds / (len(LEARNING_METHODS) + 1)) - START - AFTER_A_HANG - 1
    return int(had[0]) + 1 if had else max(LEAST_TRAINING, share)


def learning_steps(context):
    """Our methods for the same time, then AdamW for as many tokens as the faster of them."""
    programs = context.program("distro-worker").parent
    done = (context.part("learning") or {"steps": {}})["steps"]
    seconds = seconds_of_learning(context.seconds, done)
    common = ("--config", SMALL, "--text", context.text())

    def adamw():
        tokens = max((row["tokens"] for row in results.rows(context.part("learning"))), default=0)
        return python("adamw.py", *common, "--tokens", tokens, "--seconds", seconds)

    return [*(Step(method, python("learning.py", "--bin", programs, *common, "--method", method, "--seconds", seconds), seconds + START)
              for method in LEARNING_METHODS), Step("adamw", adamw, seconds + START)]


PARTS = (
    Part("machine", "the GPU, its driver, clocks, memory and bus", 0.2, machine_steps),
    Part("tests", f"the tests of kernels, ranks and nodes, each in a new process that ends after {WATCHDOG} s", 6, test_steps),
    Part("sanitizers", "compute-sanitizer over the kernels: memcheck, racecheck, synccheck", 8, sanitizer_steps),
    Part("kernels", "every operation beside its floor and PyTorch's operations, 1.2 B parameters", 2, kernel_steps),
    Part("training", "forward and backward of 125 M and 1.2 B beside eager PyTorch and torch.compile", 5, training_steps),
    Part("replicas", "a run with a worker on the GPU and one on the CPU: the same bits after every round", 2, replica_steps),
    Part("learning", "125 M parameters: deltas and signs beside AdamW, for the time that is left", 8, learning_steps),
)
