"""Every command of README.md and docs/quickstart.md, read from the pages and typed in a bare Debian 12 into which this checkout
was copied, at the same place as here. `scripts/test_pages` runs it; it is no part of scripts/test.

Of a command only the worker's name is replaced, where the pages have one worker and a run starts with three. `aggregator.example` is a line of
/etc/hosts. The tests stand in the order in which a reader gets there: each goes on with what the one before left.
"""

import pathlib
import re
import shutil
import subprocess

import bare_root
import pytest
from machine import LIMIT, Machine

SOURCE = pathlib.Path(__file__).resolve().parents[2]
README, QUICKSTART = "README.md", "docs/quickstart.md"
CHECKOUT = str(SOURCE)  # in the root, too: so ccache has what was compiled here
WORKER_NAMES = ("w1", "w2", "w3")
SECTIONS = {README: {"Several machines"}, QUICKSTART: {"Over the internet", "By hand, on one machine"}}  # whose blocks are typed
TYPED = {"./scripts/demo", "./scripts/test"}
ELSEWHERE = {"docker compose": "tests/deploy/containers_test.py", "helm install": "tests/deploy/cluster_test.py"}  # they need more than a root


def fenced(page, section):
    """[(kind, commands)]: the blocks of a page's section."""
    body = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", (SOURCE / page).read_text(), re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^```(?:sh)? *(\w*)\n(.*?)^```", body, re.MULTILINE | re.DOTALL)


def inline(page, begin):
    """The one command between backticks in the text of a page that begins so."""
    (command,) = set(re.findall(rf"`({re.escape(begin)}[^`\n]*)`", (SOURCE / page).read_text()))
    return command


@pytest.fixture(scope="module")
def machine(request, tmp_path_factory):
    with bare_root.root_of(bare_root.SUITES["bookworm"], request, tmp_path_factory) as root:
        copy_checkout(root.folder / SOURCE.relative_to("/"))
        with open(root.folder / "etc/hosts", "a") as hosts:
            hosts.write("127.0.0.1 aggregator.example\n")
        (root.folder / "etc/apt/apt.conf.d/yes").write_text('APT::Get::Assume-Yes "true";\n')  # what a person answers
        compiled = pathlib.Path.home() / ".cache/ccache"
        if compiled.exists():
            root.bind(compiled, "/root/.cache/ccache", writable=True)
        made = Machine(root)
        yield made
        made.close()


def copy_checkout(to):
    """A clone of this checkout, with what is not committed yet; and LibTorch, where it is installed: 544 MB less to download."""
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{SOURCE}", to], check=True)
    files = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], check=True, capture_output=True).stdout
    archive = subprocess.run(["tar", "-C", SOURCE, "--null", "-T", "-", "-c"], input=files, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-C", to, "-x"], input=archive, check=True)
    installed = SOURCE / ".deps/python"
    if (installed / "complete").exists():
        shutil.copytree(installed, to / ".deps/python", symlinks=True)


def give_text(machine, folder):
    machine.type(f"head -c 300000 {CHECKOUT}/build/demo/perl-doc.txt > text.txt", folder)


def start_workers(machine, shell, command, folder, invites):
    """The pages' command for w2, for each of three."""
    assert "w2" in command
    for name in WORKER_NAMES:
        give_text(machine, f"{folder}/{name}")
        machine.type(f"cp {invites}/{name}.invite .", f"{folder}/{name}")
        machine.start(name, shell + command.replace("w2", name), f"{folder}/{name}")


def test_demo(machine):
    said = machine.type(inline(README, "./scripts/demo"), CHECKOUT, internet=True)
    assert re.search(r"demo: held-out loss [\d.]+ is below the bigram floor", said)


def test_readme_several_machines(machine):
    ((_, commands),) = fenced(README, "Several machines")
    path = inline(README, "export PATH=")
    log = machine.start("aggregator", f"{path}\n{commands}", CHECKOUT)
    machine.await_line(log, "listening .*")
    start_workers(machine, path.replace("$PWD", CHECKOUT) + "\n", inline(README, "distro-worker --invite"), "/root/readme", CHECKOUT)
    machine.await_line(log, r"round committed round=3 .*")
    machine.stop()


def test_quickstart_over_the_internet(machine):
    blocks = fenced(QUICKSTART, "Over the internet")
    prepare, look = (commands for kind, commands in blocks if not kind)
    commands = dict(blocks)
    shell = f'export PATH="{CHECKOUT}/build/dev/bin:$PATH"; checkout={CHECKOUT}\n'  # the first lines of `prepare`, in another shell
    machine.type(prepare, CHECKOUT)
    aggregator = machine.start("aggregator", shell + commands["aggregator"], "/srv/distro")
    machine.await_line(aggregator, "listening .*")
    machine.await_line(machine.start("archiver", shell + commands["archiver"], "/srv/distro"), "serving metrics .*")
    start_workers(machine, shell, commands["worker"], "/root/quickstart", "/srv/distro")
    # 5 and 9 say that this link would hold the run up: while others train here it may.
    machine.type(shell + look.replace("w2.invite ", "w2.invite || test $? = 5 -o $? = 9 ", 1), "/root/quickstart/w2")
    machine.await_line(aggregator, r"round committed round=3 .*")
    machine.type(shell + commands["install"], CHECKOUT, internet=True)
    machine.await_line(machine.start("prometheus", shell + commands["prometheus"], "/srv/distro"), "ready to receive web requests")
    for page in ("http://127.0.0.1:7701/", "http://127.0.0.1:9090/consoles/distro.html"):
        assert page in (SOURCE / QUICKSTART).read_text()
        machine.type(f'python3 -c "import urllib.request; print(urllib.request.urlopen(\'{page}\').status)"', CHECKOUT)
    machine.stop()


def test_quickstart_by_hand(machine):
    """To the end of its run, which goes on for 80 rounds."""
    ((_, commands),) = fenced(QUICKSTART, "By hand, on one machine")
    training, generate = re.fullmatch(r"(.*\n)(distro-worker generate [^\n]*\n)", commands, re.DOTALL).groups()
    give_text(machine, CHECKOUT)
    machine.start("by_hand", training + "wait\n", CHECKOUT)
    machine.await_line(machine.root.folder / "tmp/distro/a.out", "worker a of run .*", limit=LIMIT)
    said = machine.type(f'export PATH="{CHECKOUT}/build/dev/bin:$PATH"\n{generate}', CHECKOUT)
    assert said.startswith("The ")
    machine.stop()


def test_scripts_test(machine, request):
    if not request.config.getoption("--all"):
        pytest.skip("./scripts/test downloads 2.3 GB: --all")
    machine.type(inline(README, "./scripts/test"), CHECKOUT, internet=True)


def test_types_all_commands():
    """A block of the two pages is typed above, or shows what a program prints; so is a command in their text. Python is that of
    docs/python.md."""
    for page, typed in SECTIONS.items():
        text = (SOURCE / page).read_text()
        for section, body in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
            for block in re.findall(r"^```python\n.*?^```\n", body, re.MULTILINE | re.DOTALL):
                assert block in (SOURCE / "docs/python.md").read_text(), f"{page}: docs/python.md has other lines than '{section}'"
                body = body.replace(block, "")
            if section not in typed and "```" in body:
                assert "How the demo ends" in body and body.count("```") == 2, f"{page}: nobody types the commands of '{section}'"
        for command in re.findall(r"`(\./scripts/\w+|docker compose|helm install)[^`]*`", text):
            assert command in TYPED or (SOURCE / ELSEWHERE[command]).exists(), f"{page}: nobody types {command}"
