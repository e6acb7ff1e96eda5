"""Holds the tree to rules.py: compiled files by the build's dependency files, headers by their text, programs and
archives by what they link; every source to be in the build; every name of a namespace to be defined once; tests to be named by verbs.

usage: structure_test.py SOURCE_ROOT BUILD_FOLDER NINJA
"""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys

import definitions
import rules
from names_of_tests import check_test_names

SOURCE_FOLDERS = ("common", "kernels", "server", "worker", "tools", "tests", "bench")


@functools.cache
def unit_of(path):
    """The longest unit name that fits a path relative to the root of the sources; None: no row in rules.py."""
    names = set(rules.USES) | {name for outside in rules.OUTSIDE.values() for name in outside.seen_in}
    if path.startswith("tests/"):  # a folder below tests/ is a unit of its own: what it mirrors decides
        names |= {"/".join(path.split("/")[:n]) for n in range(2, path.count("/") + 1)}
    fitting = [name for name in names if path.startswith(name + "/")]
    return max(fitting, key=len, default=None)


def parents(unit):
    """The unit and the units it lies in, the nearest first."""
    parts = unit.split("/")
    return ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]


def mirrored(unit):
    """The unit that a test folder tests: tests/common/method/codec -> common/method/codec; None for other units."""
    return unit_of(unit[len("tests/") :] + "/x") if unit.startswith("tests/") else None


def direct_uses(unit):
    uses = rules.USES.get(up_to_row(unit)[-1], "").split()
    if unit.startswith("tests/"):
        uses = uses + ["tests/testing"] + ([mirrored(unit)] if mirrored(unit) else [])
    return uses


@functools.cache
def may_use(unit):
    """All units that `unit` may include, itself among them."""
    reached, open_ends = set(), [unit]
    while open_ends:
        name = open_ends.pop()
        if name not in reached:
            reached.add(name)
            open_ends += direct_uses(name)
    return reached


def up_to_row(unit):
    """The unit and those it lies in, up to the first that has a row of its own in USES."""
    names = []
    for name in parents(unit):
        names.append(name)
        if name in rules.USES:
            break
    return names


def allows(listed, unit):
    """Whether a list of units names `unit` or, for a test, a folder it lies in or what it tests. A unit without a row, None, may
    all: its sources are complained about."""
    if unit is None:
        return True
    names = parents(unit) if unit.startswith("tests/") else up_to_row(unit)
    if mirrored(unit):
        names = names + up_to_row(mirrored(unit))
    return any(name in listed for name in names)


def without_row(*paths):
    """Complaints about those whose folder the rules do not know."""
    return [f"{path}: its folder has no row in tests/structure/rules.py" for path in paths if unit_of(path) is None]


def judge_project(source, header):
    """Complaints about `source` using our own `header`; both relative to the root of the sources."""
    unit, used, missing = unit_of(source), unit_of(header), without_row(source, header)
    if missing:
        return missing
    inside = used not in rules.NOT_INSIDE.get(unit, "").split()
    if inside and any(used == name or used.startswith(name + "/") for name in may_use(unit)):
        return []
    return [f"{source}: {unit} may not use {used} ({header})"]


def judge_unseen(source, header):
    """Complaints about a `source` that sees our own `header`, through whatever other header."""
    return [f"{source}: no file of {folder} may see {forbidden} ({header})" for folder, exempt, forbidden in rules.UNSEEN
            if source.startswith(folder + "/") and not source.startswith(exempt + "/") and header.startswith(forbidden + "/")]


def judge_outside(source, header, named):
    """Complaints about `source` using a `header` of the outside. `named`: it stands in the source's own text."""
    unit, complaints = unit_of(source), without_row(source)
    if complaints:
        return complaints
    for name, outside in rules.OUTSIDE.items():
        if re.search(outside.includes, header):
            if named and not allows(outside.named_in, unit):
                complaints.append(f"{source}: names {header}, and only {', '.join(outside.named_in)} may name {name}")
            elif not allows(outside.seen_in, unit):
                complaints.append(f"{source}: {unit} may not see {name} ({header})")
    return complaints


def judge_library(program, unit, library):
    """Complaints about a program of `unit` that needs the shared `library`."""
    return [f"{program}: {unit} may not link {name} ({library})" for name, outside in rules.OUTSIDE.items()
            if re.search(outside.libraries, library) and not allows(outside.seen_in, unit)]


def judge_symbol(archive, unit, symbol):
    """Complaints about an archive of `unit` with the undefined `symbol`."""
    return [f"{archive}: {unit} may not use {name} ({symbol})" for name, outside in rules.OUTSIDE.items()
            if outside.symbols and re.search(outside.symbols, symbol) and not allows(outside.seen_in, unit)]


def parse_ninja_deps(text):
    """`ninja -t deps` -> {object: [its dependencies]}."""
    deps, current = {}, None
    for line in text.splitlines():
        if line.startswith("    "):
            current.append(line.strip())
        elif line:
            current = deps.setdefault(line.split(":")[0], [])
    return deps


def check_includes(source, text):
    """Complaints about the #include lines of one file of ours."""
    complaints = []
    for header in re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', text, re.MULTILINE):
        if header.startswith("distro/v1/"):
            complaints += judge_project(source, "proto/" + header) + judge_unseen(source, "proto/" + header)
        elif header.split("/")[0] in SOURCE_FOLDERS:
            complaints += judge_project(source, header)
        complaints += judge_outside(source, header, named=True)
    return complaints


def check_openers(source, text):
    """Complaints about a file of ours that opens files itself."""
    if source in rules.OPENERS or source.split("/")[0] in ("tests", "bench"):
        return []
    found = re.findall(r"#\s*include\s*<(fcntl\.h|fstream)>|\b(fopen|[io]?fstream)\b", text)
    return [f"{source} opens files itself ({' '.join(filter(None, found[0]))}): use common/base/file_calls.h"] if found else []


def check_waits(source, text):
    """Complaints about a file of ours that waits by the calendar's clock, which may be set."""
    if source.split("/")[0] in ("tests", "bench"):
        return []
    found = re.findall(r"\b\w+With(?:Timeout|Deadline)\b", text)
    return [f"{source} waits by a clock that may be set ({found[0]}): use common/base/steady_cond_var.h"] if found else []


def check_method_names(source, text):
    """Complaints about a file of ours that asks for a method by its name."""
    if source.split("/")[0] in ("tests", "bench") or any(source == place or source.startswith(place + "/") for place in rules.NAMES_METHODS):
        return []
    found = re.findall(r"\bMETHOD_(?!UNSPECIFIED)\w+|\bhas_deltas\(\)|\bstep\(?\)?\.deltas\(\)|\b(?:Deltas|Signs)\(\)", text)
    return [f"{source} asks for a method by its name ({found[0]}): ask common/method/methods.h"] if found else []


class Tree:
    """The sources and one build folder of them."""

    def __init__(self, root, build, ninja):
        self.root, self.build, self.ninja = root, build, ninja
        self.compiled = {}  # object relative to the build folder -> source relative to the root
        self.folders = {}  # program -> folder of the sources that it is made of, wherever it is put
        for command in json.loads((build / "compile_commands.json").read_text()):
            source = self.relative(command["file"])
            if source:
                obj = re.search(r" -o (\S+)", command["command"]).group(1)
                self.compiled[obj] = source
                target = re.search(r"^(.*)/CMakeFiles/([^/]*)\.dir/", obj)
                if target:
                    self.folders[target.group(2)] = target.group(1)

    def relative(self, path):
        """A path of a dependency file relative to the root of the sources; None: not a file of ours."""
        path = pathlib.Path(os.path.normpath(self.build / path))
        generated = self.build / "proto" / "generated"
        if path.is_relative_to(generated):
            return "proto/" + str(path.relative_to(generated))
        for folder in SOURCE_FOLDERS:
            if path.is_relative_to(self.root / folder):
                return str(path.relative_to(self.root))
        return None

    def sources(self):
        for folder in SOURCE_FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in (".h", ".cc", ".cu", ".cuh"):
                    yield str(path.relative_to(self.root))

    def run(self, *command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def linked(self, kind):
        """The build's targets of one linker rule that exist: (path relative to the build folder, unit)."""
        for line in self.run(self.ninja, "-C", str(self.build), "-t", "targets", "all").splitlines():
            path, _, rule = line.partition(": ")
            if re.search(f"(CXX|CUDA)_{kind}_LINKER", rule) and (self.build / path).is_file():
                yield path, unit_of(self.folders.get(path.split("/")[-1], path) + "/x")


def check_dependency_files(tree):
    complaints, count, judged = [], 0, set()
    for obj, deps in parse_ninja_deps(tree.run(tree.ninja, "-C", str(tree.build), "-t", "deps")).items():
        source = tree.compiled.get(obj)
        if source is None:
            continue  # of a target that is no more
        count += 1
        if obj.startswith("tests/") and not source.startswith("tests/"):
            source = obj.split("/CMakeFiles/")[0] + "/x.cc"  # tests compile it once more, with headers of theirs
        for dep in deps:
            if (unit_of(source), dep) in judged:
                continue
            judged.add((unit_of(source), dep))
            ours = tree.relative(dep)
            complaints += judge_project(source, ours) + judge_unseen(source, ours) if ours else judge_outside(source, dep, named=False)
    if count == 0:
        complaints.append(f"{tree.build}: nothing is built there")
    return complaints, f"{count} of {len(tree.compiled)} compiled files"


def check_text(tree):
    complaints, count = [], 0
    for source in tree.sources():
        count += 1
        text = (tree.root / source).read_text()
        complaints += check_includes(source, text) + check_openers(source, text) + check_waits(source, text) + check_method_names(source, text)
    return complaints, f"{count} source files"


def check_links(tree):
    complaints, programs, archives = [], 0, 0
    for path, unit in tree.linked("EXECUTABLE"):
        programs += 1
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", tree.run("readelf", "-d", str(tree.build / path))):
            complaints += judge_library(path, unit, library)
    for path, unit in tree.linked("STATIC_LIBRARY"):
        archives += 1
        for symbol in re.findall(r"^ +U (\S+)", tree.run("nm", "-u", str(tree.build / path)), re.MULTILINE):
            complaints += judge_symbol(path, unit, symbol)
    return complaints, f"{programs} programs and {archives} archives"


def check_registration(tree):
    """Every source file is compiled by some target. Fuzz targets exist in the fuzz preset only, and CUDA's files in the cuda
    preset: there by name, the former in tests/fuzz/CMakeLists.txt, the latter in their folder's."""
    compiled = set(tree.compiled.values())
    listed = tree.root / "tests" / "fuzz" / "CMakeLists.txt"
    fuzz = listed.read_text() if listed.exists() else ""
    complaints = []
    for source in tree.sources():
        folder, name = source.rsplit("/", 1)
        if source.startswith("tests/fuzz/"):
            registered = name in fuzz
        elif folder.endswith("/cuda") or re.match(r"(cuda|nccl)_|.*\.cu$", name):
            lists = tree.root / folder / "CMakeLists.txt"
            registered = source in compiled or (lists.exists() and name in lists.read_text())
        else:
            registered = source in compiled
        if source.endswith((".cc", ".cu")) and not registered:
            complaints.append(f"{source}: no CMake target compiles it")
    return complaints, "every source file in a target"


def judge_definitions(texts):
    """Complaints about names that more than one file defines in one namespace. `texts`: {path: its text}."""
    files = {}
    for path, text in texts.items():
        for namespace, name in definitions.definitions(text):
            files.setdefault(f"{namespace}::{name}", set()).add(path)
    return [f"{name}: is defined in {' and '.join(sorted(paths))}; in one program that is undefined behaviour"
            for name, paths in files.items() if len(paths) > 1]


def check_definitions(tree):
    texts = {source: (tree.root / source).read_text() for source in tree.sources()}
    return judge_definitions(texts), "every name of a namespace defined once"


def main():
    tree = Tree(pathlib.Path(sys.argv[1]).absolute(), pathlib.Path(sys.argv[2]).absolute(), sys.argv[3])
    failed = False
    for check in (check_dependency_files, check_text, check_links, check_registration, check_definitions, check_test_names):
        complaints, what = check(tree)
        complaints = sorted(set(complaints))
        print(f"{check.__name__}: {what}: {len(complaints)} complaints")
        for complaint in complaints:
            print("  " + complaint)
        failed |= bool(complaints)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
