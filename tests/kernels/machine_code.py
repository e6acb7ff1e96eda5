#!/usr/bin/env python3
"""The machine code of the GPU's kernels: what it may not contain, and its budgets.

    tests/kernels/machine_code.py build/cuda/kernels/cuda/libdistro_kernels_cuda.a   # prints the table
        --update   # writes it to tests/kernels/README.md
        --check    # the test

The table of tests/kernels/README.md is the budget: the check fails if a kernel has more registers or shared memory than it
says, or instructions beyond SLACK. It also fails where code would not give the bits of a CPU: a multiply-add in a
kernel whose source has none (FUSED has the others), an operation that flushes denormals; and where a kernel uses
local memory, which is where registers spill to.

Needs cuobjdump and nvdisasm of the CUDA toolkit, and of it only these: `pip install nvidia-cuda-cuobjdump
nvidia-cuda-nvdisasm` has them too, from 13.2 on, and reads what 13.0 compiles.
"""
import argparse
import collections
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "tests" / "kernels" / "README.md"
TABLE = re.compile(r"(<!-- table: machine_code -->\n).*?(<!-- end -->)", re.S)

# As the page names them, in its order.
NAMES = {
    "CompressKernel<1>": "Compress, whole blocks",
    "CompressKernel<0>": "Compress, edges",
    "FeedbackKernel": "Feedback",
    "ApplyKernel": "Apply",
    "ApplyDeltasKernel": "ApplyDeltas",
    "CompressDeltasKernel<0, 1>": "CompressDeltas, elements, whole blocks",
    "CompressDeltasKernel<0, 0>": "CompressDeltas, elements, edges",
    "CompressDeltasKernel<1, 1>": "CompressDeltas, frequencies, whole blocks",
    "CompressDeltasKernel<1, 0>": "CompressDeltas, frequencies, edges",
    "FeedbackElementsKernel": "FeedbackDeltas, elements",
    "FeedbackFrequenciesKernel": "FeedbackDeltas, frequencies",
    "LookaheadKernel": "Lookahead",
    "StateHashKernel": "StateHash",
    "FindNotFiniteKernel": "FindNotFinite",
    "PiecesKernel": "RowSums, pieces",
    "RowsKernel": "RowSums, rows",
    "DeltaSquaresKernel": "DeltaSquares",
}
# Their source has fused multiply-adds.
FUSED = {
    "Compress, whole blocks",
    "Compress, edges",
    "Feedback",
    "CompressDeltas, frequencies, whole blocks",
    "CompressDeltas, frequencies, edges",
    "FeedbackDeltas, frequencies",
}
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
SLACK = 1.02  # of instructions: other versions of the compiler order them differently
# The estimate of a quotient of integers, from a reciprocal that is no denormal: no float of the source.
INTEGER_DIVISION = "F2I.FTZ.U32.TRUNC.NTZ"

SKIPPED = 77


@dataclasses.dataclass
class Kernel:
    """One kernel on one architecture."""

    registers: int = 0
    shared: int = 0  # bytes of a group
    local: int = 0  # bytes of a thread
    instructions: int = 0
    code: int = 0  # bytes, with what aligns it
    operations: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # with modifiers: FADD.FTZ


def kernel_name(symbol):
    """The page's name; a kernel without one has that of its function."""
    function, arguments = re.search(r"\d+([A-Z][A-Za-z]*Kernel)(?:I((?:Lb[01]E)+))?E", symbol).groups()
    name = f"{function}<{', '.join(re.findall('[01]', arguments))}>" if arguments else function
    return NAMES.get(name, name)


def sections(text):
    """Yields (architecture, kernel, lines below) of either listing of cuobjdump."""
    architecture, kernel, lines = None, None, []
    for line in text.splitlines():
        if found := re.match(r"\s*arch = (sm_\d+)", line):
            if kernel:
                yield architecture, kernel, lines
            architecture, kernel = found[1], None
        elif found := re.match(r"\s*Function\s*:?\s*(\w+):?$", line):
            if kernel:
                yield architecture, kernel, lines
            kernel, lines = kernel_name(found[1]), []
        else:
            lines.append(line)
    if kernel:
        yield architecture, kernel, lines


INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")
CONSTANT_MOVE = re.compile(r"-RZ, RZ")  # how the compiler writes some constants: 0 * 0 + constant


def parse(resources, code):
    """{(architecture, kernel): Kernel} of `cuobjdump -res-usage` and `cuobjdump -sass`."""
    kernels = collections.defaultdict(Kernel)
    for architecture, name, lines in sections(resources):
        for key, value in re.findall(r"\b(REG|STACK|SHARED|LOCAL):(\d+)", " ".join(lines)):
            kernel = kernels[architecture, name]
            if key == "REG":
                kernel.registers = int(value)
            elif key == "SHARED":
                kernel.shared = int(value)
            else:
                kernel.local += int(value)
    for architecture, name, lines in sections(code):
        kernel = kernels[architecture, name]
        for found in filter(None, map(INSTRUCTION.match, lines)):
            kernel.code = max(kernel.code, int(found[1], 16) + 16)
            if found[2] == "NOP":
                continue
            kernel.instructions += 1
            if not CONSTANT_MOVE.search(found[3]):
                kernel.operations[found[2]] += 1
    return dict(kernels)


def faults(kernels):
    """What must be in no code."""
    for (architecture, name), kernel in kernels.items():
        where = f"{name}, {architecture}: "
        for operation, count in kernel.operations.items():
            base, *modifiers = operation.split(".")
            if base in ("FFMA", "FFMA2", "DFMA", "HFMA2") and name not in FUSED:
                yield where + f"{count} {operation}, and its source has no fused multiply-add"
            if "FTZ" in modifiers and operation != INTEGER_DIVISION:
                yield where + f"{count} {operation}, which flushes denormals"
            if base in ("LDL", "STL"):
                yield where + f"{count} {operation}: it uses local memory"
        if kernel.local > 0:
            yield where + f"{kernel.local} bytes of local memory"


def table(kernels):
    """The page's. One value where all architectures have the same."""
    lines = [
        "| kernel | registers | shared memory, bytes | instructions | code, bytes |",
        "|---|---|---|---|---|",
    ]
    place = {name: i for i, name in enumerate(NAMES.values())}
    for name in sorted({name for _, name in kernels}, key=lambda name: (place.get(name, len(place)), name)):
        cells = [name]
        for field in ("registers", "shared", "instructions", "code"):
            values = [str(getattr(kernels[architecture, name], field)) for architecture in ARCHITECTURES]
            cells.append(" / ".join(values) if len(set(values)) > 1 else values[0])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def budgets(page):
    """{(architecture, kernel): (registers, shared, instructions)} of the page's table."""
    budget = {}
    for row in TABLE.search(page)[0].splitlines()[3:-1]:
        name, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        for i, architecture in enumerate(ARCHITECTURES):
            values = [[int(value) for value in cell.split(" / ")] for cell in cells[:3]]
            budget[architecture, name] = tuple(value[i] if len(value) > 1 else value[0] for value in values)
    return budget


def overruns(kernels, budget):
    """Where code needs more than its budget, has none, or is missing. A build may have fewer architectures."""
    built = {architecture for architecture, _ in kernels}
    budget = {key: value for key, value in budget.items() if key[0] in built}
    for key in sorted(kernels.keys() ^ budget.keys()):
        yield f"{key[1]}, {key[0]}: {'has no budget' if key in kernels else 'is not in the archive'}"
    for key in sorted(kernels.keys() & budget.keys()):
        kernel, (registers, shared, instructions) = kernels[key], budget[key]
        for what, used, most in (
            ("registers", kernel.registers, registers),
            ("bytes of shared memory", kernel.shared, shared),
            ("instructions", kernel.instructions, int(instructions * SLACK)),
        ):
            if used > most:
                yield f"{key[1]}, {key[0]}: {used} {what}, of {most} in the table"


def listing(cuobjdump, option, archive):
    tools = {**os.environ, "PATH": f"{pathlib.Path(cuobjdump).parent}:{os.environ['PATH']}"}  # it runs nvdisasm
    done = subprocess.run([cuobjdump, option, archive], env=tools, check=True, capture_output=True, text=True)
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", help="libdistro_kernels_cuda.a")
    parser.add_argument("--cuobjdump", default="cuobjdump")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.cuobjdump = shutil.which(options.cuobjdump)
    if options.cuobjdump is None or not pathlib.Path(options.archive).exists():
        print("skipped: needs a build with DISTRO_CUDA, cuobjdump and nvdisasm")
        return SKIPPED
    kernels = parse(*(listing(options.cuobjdump, option, options.archive) for option in ("-res-usage", "-sass")))
    found = list(faults(kernels))
    if options.check:
        found += overruns(kernels, budgets(PAGE.read_text()))
    elif options.update:
        PAGE.write_text(TABLE.sub(lambda match: f"{match[1]}{table(kernels)}\n{match[2]}", PAGE.read_text()))
    else:
        print(table(kernels))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
