"""docs/quickstart.md, "Over the internet", whole and as it stands: what it types on the aggregator's machine and on three others, behind links
of 1:10, the Prometheus that it starts, every panel, the pages in Chromium.

Each machine has a network, /etc/hosts and /srv of its own (machines.py), so that names, ports and folders are those of the page.
Three things differ: the folder of programs is the build's, nothing is installed, and the worker's block is also typed with w1 and w3
for w2."""
import contextlib
import json
import math
import os
import pathlib
import re
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest

import machines
import shaped_links
from console_browser import SCREENSHOTS, browser, keep, opened, panels

SOURCE = pathlib.Path(os.environ["DISTRO_SOURCE"])
sys.path[:0] = [str(SOURCE / "tests/browser"), str(SOURCE / "scripts/dashboards")]
import browser as status_browser  # noqa: E402
import quickstart  # noqa: E402
from console import page_name  # noqa: E402
from processes import until  # noqa: E402
from source import Source, fill  # noqa: E402

UP = {"w1": 400e3, "w2": 200e3, "w3": 400e3}  # bits a second; ten times that down
SLOW = "w2"  # the page's second machine
PROMETHEUS, STATUS = "http://127.0.0.1:9090", "http://127.0.0.1:7701/"
DISTRO = "/srv/distro"
LIMIT = 180  # seconds for anything that is waited for
# Filled by GPUs, by runs of signs or of local data, by faults, or by workers whose own metrics are scraped only.
EMPTY = {panel.title for panel in Source().panels() if panel.gpu or panel.row == "Deltas"} | {
    "Lateness of late updates (95th percentile)", "Failed calls", "State changes per hour",
    "Held-out loss on the worker's own text", "Failed writes of workers", "Sign agreement and shared coefficients"}


def answers(url):
    with contextlib.suppress(urllib.error.URLError, ConnectionError):
        return urllib.request.urlopen(url, timeout=20).read()


class Path:
    """Follows the section; what it started ends with close()."""

    def __init__(self, hub, folder):
        self.folder, self.processes = folder, {}
        variables = {"PATH": machines.with_programs(os.environ["DISTRO_BIN"]), "checkout": SOURCE}
        self.main = machines.Machine("aggregator", folder, {"aggregator.example": "127.0.0.1"}, **variables)
        self.main.may_be()
        self.others = {}
        for name, up in UP.items():
            link = hub.link(up, 10 * up)
            self.others[name] = machines.Machine(name, folder, {"aggregator.example": link.address}, link.prefix, **variables)

    def start(self, machine, name, command):
        self.processes[name] = machine.start(name, command, DISTRO)

    def alive(self):
        return all(process.alive() for process in self.processes.values())

    def close(self):
        for process in self.processes.values():
            print(f"== {process.name}\n{process.log()[-4000:]}")  # pytest shows it when a test fails
            process.kill()

    def follow(self):
        prepare, look = quickstart.commands("")
        (install,) = quickstart.commands("install")
        self.main.bash(prepare.replace("$PWD/build/dev/bin", os.environ["DISTRO_BIN"]), SOURCE)
        self.main.bash("".join(line for line in install.splitlines(True) if not line.startswith("apt-get")), DISTRO)
        for kind in ("aggregator", "archiver", "prometheus"):
            (command,) = quickstart.commands(kind)
            self.start(self.main, kind, command)
        until(lambda: self.alive() and answers(STATUS) and answers(f"{PROMETHEUS}/-/ready"), "aggregator and Prometheus answer", LIMIT)
        made = self.main.srv / "distro"
        text = b"\n".join(page.read_bytes() for page in sorted((SOURCE / "docs").glob("*.md")))
        for name, machine in self.others.items():
            (machine.srv / "distro").mkdir()
            shutil.copy(made / f"{name}.invite", machine.srv / "distro")
            (machine.srv / "distro/text.txt").write_bytes(text)
        self.looked = self.others[SLOW].bash(look, DISTRO, ends_well=False)  # bench-link ends with its verdict
        (worker,) = quickstart.commands("worker")
        for name, machine in self.others.items():
            self.start(machine, name, worker.replace("w2", name))
        until(lambda: self.alive() and self.status()["round"]["complete"] >= 3, "three rounds", LIMIT)

    def status(self):
        return json.loads(answers(f"{STATUS}status.json"))

    def ask(self, path, **values):
        return json.loads(answers(f"{PROMETHEUS}/api/v1/{path}?{urllib.parse.urlencode(values)}"))["data"]

    def has_samples(self, expression):
        return any(math.isfinite(float(one["value"][1])) for one in self.ask("query", query=expression)["result"])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operate")  # in the build tree, also when the test is killed
    with contextlib.ExitStack() as ends:
        ends.callback(shutil.rmtree, folder)
        try:
            made = Path(ends.enter_context(shaped_links.Hub()), folder)
        except (shaped_links.Refused, AssertionError, OSError) as reason:
            ends.close()
            pytest.skip(f"machines cannot be made here: {reason}")
        ends.callback(made.close)
        made.follow()
        yield made


@pytest.fixture(scope="module")
def chromium(path):  # in its network
    with browser() as one:
        yield one


def test_second_machine_looks_before_it_joins(path):
    """Seconds a round of its link, and the data's fingerprint."""
    assert re.search(r"^a round on this link +[\d.]+ s", path.looked, re.MULTILINE), path.looked
    assert re.search(r"\b[0-9a-f]{64}\b", path.looked), path.looked


def test_targets_are_up_and_rules_healthy(path):
    until(lambda: {target["health"] for target in path.ask("targets")["activeTargets"]} == {"up"}, "every target is up", LIMIT)
    rules = [rule for group in path.ask("rules")["groups"] for rule in group["rules"]]
    assert len(rules) == len(Source().recording) + len(Source().alerts)
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] not in ("ok", "unknown")] == []


def test_panels_are_filled(path):
    def empty():
        return sorted({panel.title for panel in Source().panels() if panel.title not in EMPTY
                       for query in panel.queries if not path.has_samples(fill(query.expression, {"range": "5m"}))})
    until(lambda: path.alive() and not empty() or print(empty()), "every panel has samples", LIMIT)


def test_status_page_shows_run(path, chromium):
    if SCREENSHOTS:  # with something to see on them
        until(lambda: path.alive() and path.status()["round"]["complete"] >= 120, "rounds", LIMIT)
    watched = status_browser.Watched(chromium, STATUS, viewport={"width": 1140, "height": 850})
    watched.until("document.querySelectorAll('#workers tbody tr').length === 3 && document.querySelector('#chart path.training')")
    assert sorted(watched.texts("#workers td.name")) == sorted(UP)
    assert watched.page.text_content("#state") == "training"
    watched.keep("status_live")
    watched.close()


@pytest.mark.parametrize("row, members", Source().rows, ids=[row for row, _ in Source().rows])
def test_console_pages_name_slow_link(path, chromium, row, members):
    wanted, page = {panel.title for panel in members} - EMPTY, None

    def drawn():
        nonlocal page
        if page:
            page.close()
        page = opened(chromium, f"{PROMETHEUS}/consoles/{page_name(row)}?range=60")
        shown = panels(page)
        return all(shown[title] for title in wanted) and f"{SLOW} (upload takes" in page.text_content("#straggler")
    until(drawn, f"{row}: every panel is filled, and {SLOW} is named", LIMIT)
    if row in ("Overview", "Bandwidth"):
        keep(page, f"console_{row.lower()}_live", full_page=True)
    page.close()


def test_path_is_alive(path):
    assert path.alive()
