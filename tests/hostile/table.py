"""Rows of README.md beside this file, from which docs/hostile.md takes some."""
from attacks import ATTACKS

SAYS = {"calm": "no attack", "everything": "all at once", "everything_same_address": "all at once, from the workers' address"}


def head():
    return ("| attack | without limits | with limits |\n|---|---|---|")


def row(name, before, after):
    says = SAYS.get(name) or ATTACKS[name].says
    return f"| `{name}`: {says} | {cell(before)} | {cell(after)} |"


def cell(row):
    """Memory, threads, processor time, rounds a second, /healthz; failed checks."""
    if not row:
        return "-"
    if "skipped" in row:
        return f"skipped: {row['skipped']}"
    faults = f"; **{'; '.join(row['faults'])}**" if row["faults"] else ""
    if "memory_peak_mb" not in row:
        return faults.removeprefix("; ")
    health = "no answer" if row["healthz_seconds"] is None else f"{row['healthz_seconds']:.2f} s"
    beyond = f" ({row['cores_beyond_honest']:.2f} beyond honest rounds)" if "cores_beyond_honest" in row else ""
    return (f"{row['memory_before_mb']} to {row['memory_peak_mb']} MB, {row['threads']} threads, {row['cores']:.2f} cores{beyond}, "
            f"{row['rounds_per_second']:.1f} rounds/s, `/healthz` {health}{faults}")
