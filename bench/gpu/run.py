#!/usr/bin/env python3
"""Builds for the GPU of this machine, tests the kernels on it, and prints the whole table: kernels against their floors and against
PyTorch's operations, training against eager PyTorch and torch.compile. Below nine minutes.

    bench/gpu/run.py [--archive distro-VERSION-linux-x86_64-cuda.tar.gz] [--out FOLDER]

Needs a GPU and python3 with PyTorch 2.11. Without --archive it builds (preset cuda): CUDA toolkit, gRPC and what else the build
needs. With one, made elsewhere by `scripts/package_programs --cuda --benchmarks`, it runs the programs in there. Prints what is
missing and ends with status 3 where something is. --out keeps what every step printed.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LARGE, SMALL = ROOT / "examples/llama_1b2/config.json", ROOT / "examples/llama_125m/config.json"
TESTS = ("cuda_test", "compress_test", "apply_test", "apply_deltas_test", "compress_deltas_test", "feedback_deltas_test", "delta_backend_test",
         "elementwise_test", "enqueue_test", "worker_gpu_test")
PROGRAMS = ("gpu_kernels", "gpu_training")
BUDGET_SECONDS = 530
BYTES_PER_MS = 4.3e9  # of an H200, read and written


class Runner:
    def __init__(self, out):
        self.out, self.begin = out, time.monotonic()

    def left(self):
        return BUDGET_SECONDS - (time.monotonic() - self.begin)

    def run(self, name, command, limit):
        """The command's output; on failure prints the error and returns None."""
        begin = time.monotonic()
        try:
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=max(1, min(limit, self.left())))
        except (subprocess.TimeoutExpired, OSError) as error:
            print(f"{name}: {error}")
            return None
        (self.out / f"{name}.txt").write_text(done.stdout + done.stderr)
        print(f"-- {name}: status {done.returncode}, {time.monotonic() - begin:.0f} s")
        if done.returncode != 0:
            print(done.stdout[-1500:] + done.stderr[-1500:])
            return None
        return done.stdout

    def rows(self, name, command, limit):
        """The command's lines of JSON, by name."""
        rows = [json.loads(line) for line in (self.run(name, command, limit) or "").splitlines() if line.startswith("{")]
        return {row["name"]: row for row in rows}


def missing(archive):
    complaints = []
    probe = "import torch; assert torch.cuda.is_available(), 'PyTorch sees no GPU'; print(torch.__version__, torch.cuda.get_device_name())"
    done = subprocess.run(["python3", "-c", probe], capture_output=True, text=True)
    if done.returncode:
        complaints.append("python3 with PyTorch and a GPU: " + (done.stderr.strip().splitlines() or ["?"])[-1])
    else:
        print("PyTorch", done.stdout.strip())
    if shutil.which("nvidia-smi") is None:
        complaints.append("nvidia-smi: no NVIDIA driver")
    if archive is None and not shutil.which("nvcc") and not pathlib.Path("/usr/local/cuda/bin/nvcc").exists():
        complaints.append("nvcc: install the CUDA toolkit 13.0, or name an archive with --archive")
    if archive is None and shutil.which("grpc_cpp_plugin") is None:
        complaints.append("gRPC: install it (scripts/install_dependencies), or name an archive with --archive")
    return complaints


def unpack(archive, folder):
    """The programs of an archive, with PyTorch's LibTorch."""
    subprocess.run(["tar", "-C", folder, "-xzf", archive], check=True)
    where = "import os, torch; print(os.path.dirname(torch.__file__))"
    torch = subprocess.run(["python3", "-c", where], check=True, capture_output=True, text=True).stdout.strip()
    (folder / "distro/torch").symlink_to(torch)
    return lambda name: folder / "distro/bin" / name


def build(runner):
    runner.run("configure", ["cmake", "--preset", "cuda", "-S", ROOT, "-DCMAKE_CUDA_ARCHITECTURES=native"], 60)
    runner.run("build", ["cmake", "--build", ROOT / "build/cuda", "--parallel", "--target", *TESTS, *PROGRAMS], 240)
    return lambda name: next((ROOT / "build/cuda").rglob(name), pathlib.Path(name))


def kernel_table(ours, reference):
    print("\n| operation | ms | floor ms | times the floor | TB/s | PyTorch ms | PyTorch / ours |\n|---|---|---|---|---|---|---|")
    for name, row in ours.items():
        floor = row["parameters"] * row["bytes"] / BYTES_PER_MS
        rate = row["parameters"] * row["bytes"] / row["median_ms"] / 1e9
        other = reference.get(name)
        against = f"{other['median_ms']:.1f} | {other['median_ms'] / row['median_ms']:.1f}x" if other else " | "
        print(f"| {name} | {row['median_ms']:.3f} | {floor:.2f} | {row['median_ms'] / floor:.2f} | {rate:.2f} | {against} |")


def training_table(rows):
    print("\n| model | what | tokens/s | ms a step | against eager |\n|---|---|---|---|---|")
    for model, results in rows.items():
        eager = results.get("eager", {}).get("tokens_per_second")
        for name, row in results.items():
            ratio = f"{row['tokens_per_second'] / eager:.2f}" if eager else ""
            print(f"| {model} | {name} | {row['tokens_per_second']:.0f} | {row['median_ms']:.1f} | {ratio} |")


def failures(passed, ours, reference, training):
    """The items without figures: `passed` by test, rows by name, `training` by model."""
    failed = [test for test, ok in passed.items() if not ok]
    failed += [name for name, rows in (("kernels", ours), ("operations", reference)) if not rows]
    for model, results in training.items():
        failed += [f"{name} training of {model}" for name in ("distro", "eager", "torch.compile") if name not in results]
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    complaints = missing(options.archive)
    for complaint in complaints:
        print("missing:", complaint)
    if complaints:
        return 3
    with tempfile.TemporaryDirectory() as scratch:
        out = options.out or pathlib.Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        runner = Runner(out)
        program = unpack(options.archive, pathlib.Path(scratch)) if options.archive else build(runner)
        subprocess.run(["nvidia-smi", "--query-gpu=name,memory.total,driver_version,clocks.sm,clocks.mem", "--format=csv"], check=False)
        passed = {test: runner.run(test, [program(test)], 90) is not None for test in TESTS}
        script = ["python3", pathlib.Path(__file__).with_name("reference.py")]
        ours = runner.rows("kernels", [program("gpu_kernels"), LARGE], 90)
        reference = runner.rows("operations", [*script, "operations", LARGE], 90)
        kernel_table(ours, reference)
        training = {}
        for model, config, batch, sequence in (("125 M", SMALL, 32, 1024), ("1.2 B", LARGE, 8, 2048)):
            shape = ["--batch", batch, "--sequence", sequence]
            name = model.replace(" ", "").replace(".", "_")
            training[model] = {
                **runner.rows(f"ours_{name}", [program("gpu_training"), config, batch, sequence], 60),
                **runner.rows(f"eager_{name}", [*script, "training", config, *shape], 60),
                **runner.rows(f"compile_{name}", [*script, "training", config, *shape, "--compile"], 120)}
        training_table(training)
        failed = failures(passed, ours, reference, training)
        print(f"\n{time.monotonic() - runner.begin:.0f} s; tests: {sum(passed.values())} of {len(TESTS)} programs passed")
        for name in failed:
            print("failed:", name)
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
