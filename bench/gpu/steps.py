"""A step of the first quarter of an hour on a GPU: one command in a process of its own, with a limit. Its outcome is a JSON object:

    state    "passed", "failed", "hung": it had not ended at its limit, or "skipped": a test of more GPUs than there are
    why      what went wrong and in which test; "" where it passed
    status   exit status, negative for a signal; null where it hung
    seconds  wall time
    rows     the lines of JSON that it printed; of a test program one row: how many tests passed, which were skipped
    tail     the end of its output, and stack what a debugger said of a process that hung; "" where it passed
"""
import dataclasses
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

TAIL = 4000      # characters of output that are kept
STACK = 8000
DEBUGGER_SECONDS = 25
GONE_SECONDS = 10  # for a killed process to go
# In front of a command: it ends with first_day, also when that is killed.
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    command: object       # a tuple, or a function that makes it once the steps before have ended
    usual: int            # seconds that it takes where all is well
    limit: int            # seconds after which it hangs
    tests: bool = False   # a program of Google Test: it passes where a test passed and none failed


def run(step, end=math.inf):
    """The step's outcome; None where `end`, of time.monotonic(), came before its own end and before its limit. Whatever it
    started has ended then."""
    with tempfile.TemporaryDirectory(prefix="first_day-", ignore_cleanup_errors=True) as scratch:
        scratch = pathlib.Path(scratch)
        files = scratch / "out", scratch / "err"
        begin = time.monotonic()
        try:
            status, stack = _wait(step, files, {**os.environ, "TMPDIR": str(scratch)}, end)
        except OSError as error:
            return _outcome("failed", str(error), None, begin)
        if status is None and time.monotonic() < begin + step.limit:
            return None
        out, err = (file.read_text(errors="replace") for file in files)
    state, why, rows = _judge(step, status, out, err)
    outcome = _outcome(state, why, status, begin, rows)
    if state in ("failed", "hung"):
        outcome |= {"tail": (out + err)[-TAIL:], "stack": stack}
    return outcome


def _outcome(state, why, status, begin, rows=()):
    return {"state": state, "why": why, "status": status, "seconds": round(time.monotonic() - begin, 1), "rows": list(rows), "tail": "",
            "stack": ""}


def _wait(step, files, environment, end):
    """The exit status, None for a step that had not ended at its limit or at `end`, and what the debugger said until `end`."""
    command = step.command() if callable(step.command) else step.command
    command = [*ENDS_WITH_US, *map(str, command)]
    with open(files[0], "wb") as out, open(files[1], "wb") as err:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True)
    try:
        return child.wait(max(0, min(step.limit, end - time.monotonic()))), ""
    except subprocess.TimeoutExpired:
        return None, _stack(child.pid, min(DEBUGGER_SECONDS, end - time.monotonic()))
    finally:
        # The whole group, also where the step ended and left processes behind.
        try:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait(GONE_SECONDS)
        except ProcessLookupError:
            child.wait()
        except subprocess.TimeoutExpired:  # the driver holds it; the next step has to see how the GPU is
            pass


def _leaves(group):
    """Processes of the group that have no child in it: the program itself, not what started it."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = int(stat.parent.name), stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(rest[2]) == group and rest[0] != "Z":
            parents[pid] = int(rest[1])
    return sorted(parents.keys() - set(parents.values()))


def _stack(group, seconds):
    """The stacks of all threads, with cuda-gdb also the kernels on the GPU, as far as they come in this time."""
    if seconds <= 0:
        return "no time was left for a debugger"
    debugger = shutil.which("cuda-gdb") or shutil.which("cuda-gdb", path="/usr/local/cuda/bin")
    kernels = ["-ex", "info cuda kernels"] if debugger else []
    debugger = debugger or shutil.which("gdb")
    if debugger is None:
        return "no debugger is here (gdb, cuda-gdb)"
    said, end = [], time.monotonic() + seconds
    for pid in _leaves(group):
        command = [debugger, "-nx", "-batch", "-p", str(pid), *kernels, "-ex", "thread apply all backtrace 24"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                  timeout=max(1, end - time.monotonic()))
            said.append(done.stdout + done.stderr)
        except subprocess.TimeoutExpired:
            said.append(f"the debugger did not end either, at process {pid}")
    return "\n".join(said)[-STACK:]


def _judge(step, status, out, err):
    """State, reason and rows."""
    place = _unfinished_test(out) if step.tests else ""
    rows = _tests(out) if step.tests else _json_lines(out)
    if status is None:
        return "hung", f"no end within {step.limit} s{place}", rows
    if status < 0:
        return "failed", f"ended by {signal.Signals(-status).name}{place}", rows
    if status > 0:
        failed = _named(out, "  FAILED  ") if step.tests else []
        last = (err.strip() or out.strip() or "without a word").splitlines()[-1]
        return "failed", f"status {status}: " + (", ".join(failed) or last) + place, rows
    if step.tests and rows[0]["passed"] == 0:
        several = re.search(r"^needs (?:[2-9]|\d\d+) GPU", out, re.M)
        return ("skipped", several[0], rows) if several else ("failed", "no test ran", rows)
    return "passed", "", rows


def _named(out, mark):
    """The tests that have this mark of Google Test."""
    return list(dict.fromkeys(re.findall(rf"^\[{mark}\] (\S+?)(?:,| \(|$)", out, re.M)))


def _unfinished_test(out):
    running = _named(out, " RUN      ")
    ended = [name for mark in ("       OK ", "  FAILED  ", "  SKIPPED ") for name in _named(out, mark)]
    return f", in {running[-1]}" if running and running[-1] not in ended else ""


def _tests(out):
    passed = re.search(r"^\[  PASSED  \] (\d+) test", out, re.M)
    return [{"passed": int(passed[1]) if passed else 0, "skipped": _named(out, "  SKIPPED ")}]


def _json_lines(out):
    rows = []
    for line in out.splitlines():
        if line.startswith("{"):
            try:
                rows.append(json.loads(line))
            except ValueError:  # a line that was cut off
                continue
    return rows
