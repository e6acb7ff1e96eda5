"""Compiles with clang -Wthread-safety -Werror every source that sees an annotated header: GCC ignores the annotations.

usage: lock_annotations_test.py SOURCE_ROOT BUILD_FOLDER NINJA WORK_FOLDER

The build says which sources see which headers, and with what flags they are compiled, so it comes first. Headers that
the build precompiles are precompiled here too; results go through ccache where there is one.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from tools import program

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "structure"))
import structure_test  # noqa: E402

ANNOTATION = re.compile(r"\bABSL_(PT_)?GUARDED_BY\b|\bABSL_ACQUIRED_|\bABSL_\w*LOCKS?_(REQUIRED|EXCLUDED)\b"
                        r"|\bABSL_(SCOPED_)?LOCKABLE\b|\bABSL_ASSERT_\w*LOCK\b|\bABSL_\w*_(UN)?LOCK_FUNCTION\b")
CHECKS = ["-O0", "-w", "-Wthread-safety", "-Wthread-safety-beta", "-Werror=thread-safety", "-Werror=thread-safety-beta"]
CCACHE = {"CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime", "CCACHE_NOHASHDIR": "1"}


def annotated(tree):
    """Our files with annotations in them."""
    return {source for source in tree.sources() if ANNOTATION.search((tree.root / source).read_text())}


def commands(tree):
    """{source: the arguments of its compiler} of the sources that see an annotated file."""
    marked = annotated(tree)
    flags = {}
    for entry in json.loads((tree.build / "compile_commands.json").read_text()):
        flags.setdefault(tree.relative(entry["file"]), shlex.split(entry["command"])[1:])
    deps = structure_test.parse_ninja_deps(tree.run(tree.ninja, "-C", str(tree.build), "-t", "deps"))
    seen = {}
    for obj, paths in deps.items():
        source = tree.compiled.get(obj)
        if source and source.endswith(".cc") and ({source} | {tree.relative(path) for path in paths}) & marked:
            seen[source] = flags[source]
    return seen


def split(arguments):
    """(arguments for clang, the header that is precompiled or None) of GCC's arguments for a source."""
    kept, header = [], None
    words = iter(arguments)
    for word in words:
        if word in ("-o", "-c"):
            next(words)
        elif word == "-include":
            header = next(words)
        elif not word.startswith(("-O", "-g", "-W", "-fpch", "-fsanitize", "-fno-sanitize")):
            kept.append(word)
    return kept, header


class Checker:
    def __init__(self, root, work):
        self.work, self.clang = work, program("clang++")
        ccache = shutil.which("ccache")
        self.launcher = [ccache] if ccache else []
        self.environment = os.environ | CCACHE | {"CCACHE_BASEDIR": str(root)}
        work.mkdir(parents=True, exist_ok=True)

    def compile(self, arguments, source, output):
        command = [*self.launcher, self.clang, *arguments, *CHECKS, "-c", str(source), "-o", str(output)]
        result = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        return result.stderr if result.returncode else ""

    def name(self, *words):
        return self.work / hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]

    def precompile(self, arguments, header):
        """The precompiled header's path."""
        output = self.name(header, *arguments).with_suffix(".pch")
        complaints = self.compile([*arguments, "-Xclang", "-fno-pch-timestamp", "-x", "c++-header"], header, output)
        if complaints:
            sys.exit(f"{header}: cannot be precompiled:\n{complaints}")
        return output

    def check(self, source, arguments, precompiled):
        include = ["-Xclang", "-fno-pch-timestamp", "-include-pch", str(precompiled)] if precompiled else []
        return self.compile([*arguments, *include], source, self.name(str(source)).with_suffix(".o"))


def main():
    root, build, work = (pathlib.Path(sys.argv[i]).absolute() for i in (1, 2, 4))
    tree = structure_test.Tree(root, build, sys.argv[3])
    checker = Checker(root, work)
    sources = {source: split(arguments) for source, arguments in commands(tree).items()}
    if not sources:
        sys.exit(f"{build}: no source that sees an annotation is built there; run scripts/build first")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        headers = {(tuple(arguments), header) for arguments, header in sources.values() if header}
        precompiled = dict(zip(headers, pool.map(lambda key: checker.precompile(*key), headers)))
        jobs = {source: pool.submit(checker.check, root / source, arguments, precompiled.get((tuple(arguments), header)))
                for source, (arguments, header) in sources.items()}
        complaints = {source: job.result() for source, job in jobs.items()}
    for source, text in complaints.items():
        if text:
            print(f"{source}:\n{text}")
    bad = sum(bool(text) for text in complaints.values())
    print(f"{len(sources)} sources that see lock annotations, {bad} with complaints")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
