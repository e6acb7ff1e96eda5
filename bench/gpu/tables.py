"""The tables of the first quarter of an hour on a GPU, from its results: {page: {name: text}} for page.fill."""
import results
from page import table
from parts import KERNEL_TESTS, MODELS, PARTS, SANITIZERS

NOT_YET = "Not measured on a GPU yet."
# The rows that machine.py prints and people ask for.
FACTS = {"gpu": "GPU", "memory_mib": "memory, MiB", "capability": "compute capability", "multiprocessors": "multiprocessors", "driver": "driver",
         "cuda": "CUDA", "pytorch": "PyTorch", "nccl": "NCCL", "most_sm_mhz": "highest clock, MHz", "most_memory_mhz": "highest clock of memory, MHz",
         "power_limit_w": "power limit, W", "pcie_generation": "PCIe generation", "pcie_lanes": "PCIe lanes"}


def by_name(rows):
    return {row["name"]: row for row in rows}


def machine_table(document):
    facts = results.rows(document)
    return table(["", ""], [(name, facts[0][key]) for key, name in FACTS.items() if key in facts[0]]) if facts else "The machine was not read."


def outcomes_table(groups):
    """Each group's steps: how many passed, what they were, and everything that did not pass."""
    lines = []
    for name, steps in groups.items():
        states = [outcome["state"] for outcome in steps.values()]
        told = [f"{step} {outcome['state']}: {outcome['why']}".replace("|", "/") for step, outcome in steps.items() if outcome["state"] != "passed"]
        tests = sum(row["passed"] for outcome in steps.values() for row in outcome["rows"])
        lines.append((name, len(states), states.count("passed"), tests, "; ".join(told) or "none"))
    return table(["", "processes", "passed", "tests that passed", "others"], lines)


def tests_table(document):
    groups = {"kernels": {}, "ranks and nodes": {}}
    for step, outcome in document["steps"].items():
        kernels = step in KERNEL_TESTS or step.startswith("golden_")
        groups["kernels" if kernels else "ranks and nodes"][step] = outcome
    return outcomes_table(groups)


def sanitizers_table(document):
    return outcomes_table({tool: {step: outcome for step, outcome in document["steps"].items() if step.split()[0] == tool}
                                     for tool in SANITIZERS})


def kernels_table(document):
    """The floor is the time that the bytes take at the rate of the copy, which is the first operation."""
    ours, reference = (by_name(document["steps"].get(step, {"rows": []})["rows"]) for step in ("ours", "pytorch"))
    if "copy" not in ours:
        return "Failed: there is no copy to compare with."
    rate = ours["copy"]["parameters"] * ours["copy"]["bytes"] / ours["copy"]["median_ms"]  # bytes per ms
    lines = []
    for name, row in ours.items():
        floor = row["parameters"] * row["bytes"] / rate
        other = reference.get(name)
        lines.append((name, f"{row['median_ms']:.3f}", f"{floor:.3f}", f"{row['median_ms'] / floor:.2f}",
                      *((f"{other['median_ms']:.1f}", f"{other['median_ms'] / row['median_ms']:.1f}") if other else ("", ""))))
    note = f"The copy moves {rate / 1e9:.2f} TB/s, read and written."
    return note + "\n\n" + table(["operation", "ms", "floor, ms", "times the floor", "PyTorch, ms", "PyTorch / ours"], lines)


def rates(document):
    """(step, row) of each step that gave tokens a second."""
    return [(step, row) for step, outcome in document["steps"].items() for row in outcome["rows"]]


def training_table(document):
    lines = []
    for model in MODELS:
        found = by_name(row for step, row in rates(document) if step.startswith(f"{model},"))
        eager = found.get("eager", {}).get("tokens_per_second")
        lines += [(model, {"distro": "a worker's"}.get(name, name), f"{row['tokens_per_second']:.0f}", f"{row['median_ms']:.1f}",
                   f"{row['tokens_per_second'] / eager:.2f}" if eager else "") for name, row in found.items()]
    return table(["model", "forward and backward", "tokens a second", "ms", "to eager"], lines) if lines else "Failed: no step gave a rate."


def variants_table(document):
    lines = [(step, f"{row['tokens_per_second']:.0f}", f"{row['median_ms']:.1f}", f"{row['first_step_seconds']:.1f}") for step, row in rates(document)]
    return table(["125 M, a worker's", "tokens a second", "ms", "first step, s"], lines) if lines else "Failed: no step gave a rate."


PHASES = ("data", "forward_backward", "compress", "wait", "apply", "evaluate")


def phases_table(rows):
    """Milliseconds of a round by phase, of rows by name that have the phases of `rounds`."""
    found = {name: (row["rounds"], row["phases"]) for name, row in rows.items() if "phases" in row}
    if not found:
        return "Failed: no step gave phases."
    shown = [phase for phase in PHASES if phase in next(iter(found.values()))[1]]
    lines = [(name, *(f"{1000 * seconds[phase] / rounds:.0f}" for phase in shown)) for name, (rounds, seconds) in found.items()]
    return table(["milliseconds a round", *shown], lines)


def of_rounds(row):
    """A row of learning.py for phases_table; its first round is the start's."""
    return row | {"rounds": row["step"] - 1}


def rounds_table(document):
    """Of the last row of each step."""
    return phases_table({step: of_rounds(outcome["rows"][-1]) for step, outcome in document["steps"].items() if outcome["rows"]})


def replicas_table(document):
    lines, first = [], {}
    for step, outcome in document["steps"].items():
        row = (outcome["rows"] or [None])[0]
        told = (row["rounds"], row["reported"], row["different"]) if row else ("", "", "")
        lines.append((step, *told, "equal" if outcome["state"] == "passed" else f"{outcome['state']}: {outcome['why']}"))
        first |= {step: row} if row else {}
    return table(["method", "rounds", "hashes compared", "different", "result"], lines) + f"\n\nThe worker on the GPU:\n\n{phases_table(first)}"


POINTS = 8  # of a curve


def learning_table(document):
    """The losses of the three at equal tokens, up to the last at which all have one."""
    curves = {step: {row["tokens"]: row for row in outcome["rows"]} for step, outcome in document["steps"].items() if outcome["rows"]}
    common = sorted(set.intersection(*(set(curve) for curve in curves.values()))) if curves else []
    if not common:
        return "Failed: there is no curve."
    shown = sorted({common[round((i + 1) * len(common) / POINTS) - 1] for i in range(POINTS) if round((i + 1) * len(common) / POINTS)})
    losses = [(f"{tokens / 1e6:.2f} M", *(f"{curve[tokens]['held_out_loss']:.3f}" for curve in curves.values())) for tokens in shown]
    last = shown[-1]
    costs = [(name, f"{curve[last]['seconds']:.0f} s", f"{curve[last]['sent_bytes'] / 1e6:.1f} MB", f"{curve[last]['received_bytes'] / 1e6:.1f} MB")
             for name, curve in curves.items()]
    return (table(["tokens", *curves], losses) + f"\n\nUntil {last / 1e6:.2f} M tokens:\n\n"
            + table(["method", "time", "sent by a worker", "received"], costs)
            + "\n\nThe first worker, which shares the GPU with three:\n\n"
            + phases_table({name: of_rounds(curve[last]) for name, curve in curves.items()}))


# Page, table, parts, and what makes it of their steps.
TABLES = (
    ("bench/gpu/README.md", "gpu_machine", ("machine",), machine_table),
    ("bench/gpu/README.md", "gpu_tests", ("tests", "nodes"), tests_table),
    ("bench/gpu/README.md", "gpu_sanitizers", ("sanitizers",), sanitizers_table),
    ("bench/gpu/README.md", "gpu_kernels", ("kernels",), kernels_table),
    ("docs/performance.md", "gpu_training", ("training", "large", "compile"), training_table),
    ("bench/gpu/README.md", "gpu_variants", ("variants",), variants_table),
    ("bench/gpu/README.md", "gpu_rounds", ("rounds",), rounds_table),
    ("bench/gpu/README.md", "gpu_replicas", ("replicas",), replicas_table),
    ("bench/gpu/README.md", "gpu_learning", ("learning",), learning_table),
)


def contents(store):
    """{page: {name: text}} of all tables. Refuses results of different GPUs."""
    store.require_one_gpu(part.name for part in PARTS)
    pages = {}
    for page, name, parts, make in TABLES:
        documents = [document for part in parts if (document := store.load(part))]
        told = NOT_YET
        if documents:
            complete = len(documents) == len(parts) and all(document["complete"] for document in documents)
            told = f"{heading(documents, complete)}\n\n{make({'steps': dict(step for one in documents for step in one['steps'].items())})}"
        pages.setdefault(page, {})[name] = told
    return pages


def heading(documents, complete):
    hardware = documents[0]["hardware"]
    several = f"{hardware['gpus']} " if hardware["gpus"] > 1 else ""
    versions = dict.fromkeys(version for document in documents for version in document["version"].split(", "))
    told = (f"{documents[0]['date']}, {several}{hardware['gpu']}, driver {hardware['driver']}, {hardware['cores']} cores of {hardware['cpu']}, "
            f"version {', '.join(versions)}")
    return told + (":" if complete else "; not all of its steps have run:")
