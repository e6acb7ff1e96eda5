"""Attacks a real aggregator with honest workers, and reports the cost and any failed check. `scripts/hostile --help` teaches."""
import argparse
import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from attacks import ATTACKS  # noqa: E402
from attacks.disk import MOUNT  # noqa: E402
from attacks.registry import Target  # noqa: E402
from bed import HERE, Bed, Suite  # noqa: E402
from processes import programs_in, until  # noqa: E402
import table  # noqa: E402
import verdict  # noqa: E402
from measure import Window  # noqa: E402

CALM_SECONDS, SLACK_SECONDS = 8, 20
ALL_ROUNDS, ALL_SECONDS = 150, 75
SUITE_SECONDS = 570
TOGETHER = ("everything", "everything_same_address")


class Attacker:
    """An attack in a process of its own."""

    def __init__(self, name, bed, seconds, same_address, prefix=()):
        command = [*prefix, sys.executable, "-B", str(HERE / "hostile.py"), "--attacker", name, "--seconds", str(seconds)]
        self._out = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen([*command, *(["--same_address"] if same_address else [])], stdin=subprocess.PIPE,
                                      stdout=self._out, stderr=subprocess.STDOUT, text=True)
        self.child.stdin.write(bed.describe())
        self.child.stdin.close()

    def told(self, seconds):
        """Its findings; a fault if it failed."""
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.stop()
            return {"attacker_did_not_end": True}
        with self._out:
            self._out.seek(0)
            said = self._out.read()
        try:
            return json.loads(said.splitlines()[-1])
        except (ValueError, IndexError):
            return {"attacker_failed": " ".join(said[-300:].split())}

    def stop(self):
        self.child.kill()
        self.child.wait()
        self._out.close()


def bed_of(suite, attack):
    place = {}
    prefix = attack.prefix
    if attack.private_folder:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="hostile-", dir=suite.space.folder)) / "data"
        place, prefix = {"in_folder": folder}, ("unshare", "-m", "sh", "-c", MOUNT, str(folder))
    return Bed(suite, attack.workers, attack.flags, prefix, **{"probation_rounds": 1000, **attack.run, **place})


def try_attack(suite, attack, seconds, same_address, calm):
    """A row of the table."""
    refused = attack.refusable() if attack.refusable else ""
    if refused:
        return {"skipped": refused}
    with contextlib.closing(bed_of(suite, attack)) as bed:
        bed.await_round(attack.begin_round)
        window = Window(bed.aggregator)
        window.start()
        seconds = seconds or attack.seconds
        if attack.meanwhile:
            told = attack.meanwhile(bed)
        else:
            told = Attacker(attack.name, bed, seconds, same_address).told(seconds + SLACK_SECONDS)
        figures = window.stop().figures()
        faults = verdict.of_figures(attack, figures, calm)
        faults += verdict.of_run(bed, attack, told | {"measured_log_lines": figures["log_lines"]})
        return {**figures, "told": told, "faults": faults}


def measure_calm(suite):
    """The same without an attack: the cost of honest rounds."""
    with contextlib.closing(Bed(suite, 2, probation_rounds=1000)) as bed:
        bed.await_round(20)
        window = Window(bed.aggregator)
        window.start()
        time.sleep(CALM_SECONDS)
        figures = window.stop().figures()
        return {**figures, "told": {}, "faults": []}


def attack_with_all(suite, same_address):
    """Every attack at once, while three honest workers finish a run."""
    names = [name for name, attack in ATTACKS.items() if attack.in_all]
    with contextlib.closing(Bed(suite, 3, rounds=ALL_ROUNDS, probation_rounds=1000)) as bed:
        bed.await_round(20)
        window = Window(bed.aggregator)
        window.start()
        attackers = [Attacker(name, bed, ALL_SECONDS, same_address, prefix=("nice", "-n", "10")) for name in names]
        try:
            finished = until_finished(bed)
        finally:
            for attacker in attackers:
                attacker.stop()
        figures = window.stop().figures()
        faults = [] if finished else [f"{bed.committed() + 1} of {ALL_ROUNDS} rounds while the attacks went on"]
        faults += verdict.of_answers(figures) + verdict.of_end(bed)
        return {**figures, "told": {"attacks": len(names)}, "faults": faults}


def until_finished(bed):
    """Whether the honest workers have ended while they were attacked."""
    try:
        until(lambda: all(worker.child.poll() is not None for worker in bed.workers), "the workers have ended", ALL_SECONDS)
        return True
    except AssertionError:
        return False


def attacker(name, seconds, same_address):
    print(json.dumps(ATTACKS[name].act(Target(sys.stdin.read(), seconds, same_address))))


def save(path, results):
    """The figures, a line an attack, beside those of other attacks that are there; what attackers told is in the output only."""
    there = json.loads(pathlib.Path(path).read_text()) if pathlib.Path(path).exists() else {}
    results = {**there, **results}
    lines = [f" {json.dumps(name)}: {json.dumps({key: value for key, value in row.items() if key != 'told'})}"
             for name, row in results.items()]
    pathlib.Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def one_row(suite, name, arguments, calm):
    try:
        if name in TOGETHER:
            return attack_with_all(suite, name == "everything_same_address")
        return try_attack(suite, ATTACKS[name], arguments.seconds, arguments.same_address, calm)
    except AssertionError as error:
        return {"faults": [str(error).splitlines()[0]], "told": {}}


def rows(suite, arguments):
    """Yields (name, row). What would begin after SUITE_SECONDS is not begun."""
    end = time.monotonic() + SUITE_SECONDS
    calm = measure_calm(suite)
    yield "calm", calm
    for name in arguments.only or [*TOGETHER, *ATTACKS]:
        begin = time.monotonic()
        late = begin > end and not arguments.only
        row = {"faults": ["was not tried: the ten minutes were over"], "told": {}} if late else one_row(suite, name, arguments, calm)
        print(f"hostile: {name}: {time.monotonic() - begin:.0f} s {json.dumps(row)}", file=sys.stderr, flush=True)
        yield name, row


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default=str(HERE.parents[1] / "build/dev/bin"))
    parser.add_argument("--only", action="append", choices=[*TOGETHER, *ATTACKS])
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--same_address", action="store_true")
    parser.add_argument("--before", default=str(HERE / "before.json"))
    parser.add_argument("--save")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--attacker", choices=ATTACKS)
    return parser.parse_args()


def main():
    arguments = parse()
    if arguments.list:
        for attack in ATTACKS.values():
            print(f"{attack.name:20} {attack.says}")
        return 0
    if arguments.attacker:
        attacker(arguments.attacker, arguments.seconds, arguments.same_address)
        return 0
    if not shutil.which("prlimit"):
        print("hostile: prlimit (util-linux) is missing", file=sys.stderr)
        return 2
    before = json.loads(pathlib.Path(arguments.before).read_text()) if pathlib.Path(arguments.before).exists() else {}
    results = {}
    print(table.head(), flush=True)
    with contextlib.closing(Suite(programs_in(arguments.bin))) as suite:
        for name, row in rows(suite, arguments):
            results[name] = row
            print(table.row(name, before.get(name), row), flush=True)
    if arguments.save:
        save(arguments.save, results)
    failed = {name: row["faults"] for name, row in results.items() if row.get("faults")}
    for name, faults in failed.items():
        print(f"hostile: {name} did not hold: {'; '.join(faults)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
