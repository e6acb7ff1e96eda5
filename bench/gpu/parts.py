"""The parts of the first quarter of an hour on a GPU, in their order: each is a list of steps (steps.py), made when it is run."""
import dataclasses
import json
import pathlib
import re
import subprocess
import sys

import machine
import results
from steps import Step

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SMALL, LARGE = ROOT / "examples/llama_125m/config.json", ROOT / "examples/llama_1b2/config.json"
MODELS = {"125 M": (SMALL, 32, 1024), "1.2 B": (LARGE, 8, 2048)}  # configuration, sequences, positions

AT_ONCE = 8     # test programs
WATCHDOG = 120  # seconds of a test program
ON_THE_GPU = "--gtest_filter=*/cuda:CudaTest.*"
KERNEL_TESTS = ("cuda_test", "gpu_test", "signs_compress_test", "signs_apply_test", "elementwise_test", "enqueue_test", "deltas_apply_test",
                "deltas_compress_test", "deltas_feedback_test", "deltas_backend_test", "float_environment_test")
GOLDEN_TESTS = ("golden_demo_test", "golden_distro_test", "golden_idct_test", "golden_delta_steps_test")
# Instrumented code is many times slower: arrays of a million elements are left to the tests above.
SMALL_SHAPES = ON_THE_GPU + "-CudaTest.*"
SANITIZED = tuple(name for name in KERNEL_TESTS if name not in ("cuda_test", "gpu_test"))  # gpu_test makes CUDA's errors on purpose
SANITIZERS = ("memcheck", "initcheck", "racecheck", "synccheck")


@dataclasses.dataclass(frozen=True)
class Context:
    """What steps are made from."""
    program: object  # the path of a program, by its name
    text: object     # makes a text to learn from, and returns its path
    package: object  # the folder with distro_train, the Python package; None without one
    part: object     # the stored document of a part, by its name; None where there is none
    folder: object   # for files that steps read; it goes with the call


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    what: str
    steps: object     # Context -> list of Step
    at_once: int = 1  # steps
    least: int = 5    # seconds below which it does not begin


# The step of each: a file of tests/python, and one of its tests.
PYTHON_TESTS = {
    "Python programs": ("python_runs_test.py", "PythonRunsTest.test_on_a_gpu_beside_a_worker_in_cpp"),
    "Python program with FSDP2": ("python_sharded_test.py", "PythonShardedTest.test_on_a_gpu_beside_a_worker_in_cpp"),
}


def python(name, *arguments):
    return (sys.executable, "-B", HERE / name, *arguments)


def machine_steps(context):
    return [Step("machine", python("machine.py"), 5, 60)]


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


def kernel_test_steps(context):
    """A program at a time."""
    golden = ("--golden_dir", ROOT / "tests/golden")
    return [Step(name, (context.program(name), ON_THE_GPU, *arguments), 10, WATCHDOG, tests=True)
            for names, arguments in ((KERNEL_TESTS, ()), (GOLDEN_TESTS, golden)) for name in names]


def node_test_steps(context):
    """A test at a time, so that none runs with what an earlier one left in Torch's allocator: the first allocation is when the
    driver may wait for a GPU that waits for a peer."""
    steps = []
    for name in ("cuda_settings_test", "worker_gpu_test"):
        program = context.program(name)
        steps += [Step(f"{name} {test}", (program, f"--gtest_filter={test}"), 10, WATCHDOG, tests=True)
                  for test in tests_of(program)] or [Step(name, (program,), 10, WATCHDOG, tests=True)]
    return steps


def sanitizer_steps(context):
    sanitizer = machine.tool("compute-sanitizer") or "compute-sanitizer"
    return [Step(f"{tool} {name}", (sanitizer, "--tool", tool, "--error-exitcode", 86, context.program(name), SMALL_SHAPES), 20, 150, tests=True)
            for tool in SANITIZERS for name in SANITIZED]


def kernel_steps(context):
    return [Step("ours", (context.program("gpu_kernels"), LARGE), 20, 90), Step("pytorch", python("reference.py", "operations", LARGE), 20, 90)]


def ours(context, name, config, sequences, positions, environment=()):
    return Step(name, ("env", *environment, context.program("gpu_training"), config, sequences, positions), 15, 75)


def reference(name, config, sequences, positions, *arguments, usual=20, limit=75):
    return Step(name, python("reference.py", "training", config, "--batch", sequences, "--sequence", positions, *arguments), usual, limit)


def training_steps(model):
    return lambda context: [ours(context, f"{model}, ours", *MODELS[model]), reference(f"{model}, eager", *MODELS[model])]


def compile_steps(context):
    return [reference(f"{model}, torch.compile", *MODELS[model], "--compile", usual=50, limit=180) for model in MODELS]


FLASH = ("TORCH_CUDNN_SDPA_DEPRIORITIZED=1",)  # of PyTorch: attention by its own kernel where cuDNN's comes first
# Name, what differs from the configuration of 125 M, sequences and positions.
VARIANTS = (("50304 words", {"vocab_size": 50304}, 32, 1024),
            ("heads of 256", {"num_attention_heads": 3, "num_key_value_heads": 3}, 32, 1024),
            ("8192 positions", {"max_position_embeddings": 8192}, 4, 8192),
            ("as it is", {}, 32, 1024))


def variant_steps(context):
    """125 M with other words, heads and positions than its configuration has, by attention of cuDNN and of PyTorch."""
    steps = []
    for name, changed, sequences, positions in VARIANTS:
        path = context.folder / f"{name.replace(' ', '_')}.json"
        path.write_text(json.dumps(json.loads(SMALL.read_text()) | changed))
        steps += [ours(context, f"{name}, {attention}", path, sequences, positions, environment)
                  for attention, environment in (("cuDNN", ()), ("flash", FLASH)) if changed or environment]
    return steps


def replica_steps(context):
    """Workers in C++ of both methods; with the package Python programs on the GPU beside a worker in C++ on the CPU."""
    programs = context.program("distro-worker").parent
    steps = [Step(method, python("replicas.py", "--bin", programs, "--method", method, "--devices", "cuda,cpu"), 25, 150)
             for method in ("deltas", "signs")]
    if context.package:
        environment = (f"DISTRO_TORCH_PYTHON={sys.executable}", f"DISTRO_PYTHON_PACKAGE={context.package}", "DISTRO_TEST_METHOD=deltas")
        binaries = [word for name in ("aggregator", "worker") for word in (f"--{name}", context.program(f"distro-{name}"))]
        for name, (file, test) in PYTHON_TESTS.items():
            steps.append(Step(name, ("env", *environment, sys.executable, "-B", ROOT / "tests/python" / file, *binaries,
                                     "--distroctl", context.program("distroctl"), test), 40, 150))
    return steps


LEARNING_METHODS = ("deltas", "signs")
LEARNING_SECONDS = 45  # of training, each
START = 25             # seconds of a step of learning beside its training: the initial model, the aggregator, the workers' start


def learning(context, config, method, seconds, *arguments):
    return python("learning.py", "--bin", context.program("distro-worker").parent, "--config", config, "--text", context.text(),
                  "--method", method, "--seconds", seconds, *arguments)


def learning_steps(context):
    """Our methods for the same time, then AdamW for as many tokens as the faster of them."""
    usual, limit = LEARNING_SECONDS + START, LEARNING_SECONDS + 3 * START

    def adamw():
        tokens = max((row["tokens"] for row in results.rows(context.part("learning"))), default=0)
        return python("adamw.py", "--config", SMALL, "--text", context.text(), "--tokens", tokens, "--seconds", LEARNING_SECONDS)

    return [*(Step(method, learning(context, SMALL, method, LEARNING_SECONDS), usual, limit) for method in LEARNING_METHODS),
            Step("adamw", adamw, usual, limit)]


ROUND_SECONDS = {"125 M": 10, "1.2 B": 20}  # of training


def round_steps(context):
    """One worker with a GPU of its own: which phases a round has."""
    return [Step(f"{model}, {method}", learning(context, MODELS[model][0], method, seconds, "--workers", 1), 3 * seconds, 150)
            for model, seconds in ROUND_SECONDS.items() for method in LEARNING_METHODS]


PARTS = (
    Part("machine", "the GPU, its driver, clocks, memory and bus", machine_steps),
    Part("tests", f"the tests of the kernels, {AT_ONCE} programs at once", kernel_test_steps, AT_ONCE),
    Part("replicas", "a run with a worker on the GPU and one on the CPU: the same bits after every round", replica_steps),
    Part("kernels", "every operation beside its floor and PyTorch's operations, 1.2 B parameters", kernel_steps),
    Part("training", "forward and backward of 125 M beside eager PyTorch", training_steps("125 M")),
    Part("variants", "125 M with attention of cuDNN and of PyTorch, other numbers of words, sizes of heads, positions", variant_steps),
    Part("nodes", f"the tests of ranks and nodes, each in a new process, {AT_ONCE} at once", node_test_steps, AT_ONCE, least=15),
    Part("learning", f"125 M: deltas, signs and AdamW, {LEARNING_SECONDS} s each", learning_steps, least=LEARNING_SECONDS + START),
    Part("rounds", "the phases of a worker's round, 125 M and 1.2 B, one worker on the GPU", round_steps, least=30),
    Part("large", "forward and backward of 1.2 B beside eager PyTorch", training_steps("1.2 B")),
    Part("compile", "both beside torch.compile", compile_steps),
    Part("sanitizers", f"compute-sanitizer over the kernels: {', '.join(SANITIZERS)}; {AT_ONCE} programs at once", sanitizer_steps, AT_ONCE),
)
