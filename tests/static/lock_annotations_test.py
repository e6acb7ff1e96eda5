"""Compiles with clang -Wthread-safety -Werror every source that sees an annotated header: GCC ignores the annotations.

usage: lock_annotations_test.py SOURCE_ROOT BUILD_FOLDER NINJA WORK_FOLDER

The build says which sources see which headers, and with what flags they are compiled, so it comes first. Headers that
the build precompiles are precompiled here too; results go through ccache where there is one, but never a precompiled
header of another folder: it names that folder's headers, which clang then sees twice.
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
CCACHE = {"CCACHE_DEPEND": "1", "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime"}
PRECOMPILED = "/cmake_pch.hxx.cxx"  # what CMake compiles for a header


def annotated(tree):
    """Our files with annotations in them."""
    return {source for source in tree.sources() if ANNOTATION.search((tree.root / source).read_text())}


def commands(tree):
    """({source: the arguments of its compiler} of the sources that see an annotated file, {precompiled header: the same
    of the header})."""
    marked = annotated(tree)
    flags, headers = {}, {}
    for entry in json.loads((tree.build / "compile_commands.json").read_text()):
        arguments = shlex.split(entry["command"])[1:]
        flags.setdefault(tree.relative(entry["file"]), arguments)
        if entry["file"].endswith(PRECOMPILED):
            headers[entry["file"].removesuffix(".cxx")] = arguments
    deps = structure_test.parse_ninja_deps(tree.run(tree.ninja, "-C", str(tree.build), "-t", "deps"))
    seen = {}
    for obj, paths in deps.items():
        source = tree.compiled.get(obj)
        if source and source.endswith(".cc") and ({source} | {tree.relative(path) for path in paths}) & marked:
            seen[source] = flags[source]
    return seen, headers


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
        self.of_this_folder = os.environ | CCACHE | {"CCACHE_BASEDIR": "", "CCACHE_HASHDIR": "1"}
        self.of_any_folder = os.environ | CCACHE | {"CCACHE_BASEDIR": str(root), "CCACHE_NOHASHDIR": "1"}
        work.mkdir(parents=True, exist_ok=True)

    def compile(self, arguments, source, suffix, environment):
        """(the output, what the compiler complains about)."""
        output = (self.work / hashlib.sha256(str(source).encode()).hexdigest()[:16]).with_suffix(suffix)
        command = [*self.launcher, self.clang, *arguments, *CHECKS, "-Xclang", "-fno-pch-timestamp", "-MD", "-MF", f"{output}.d",
                   "-c", str(source), "-o", str(output)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return output, result.stderr if result.returncode else ""

    def precompile(self, header, arguments):
        """With the flags of the header's owner: what others have beside them means nothing in it."""
        output, complaints = self.compile([*split(arguments)[0], "-fpch-instantiate-templates"], header, ".pch",
                                          self.of_this_folder)
        if complaints:
            sys.exit(f"{header}: cannot be precompiled:\n{complaints}")
        return output

    def check(self, source, arguments, precompiled):
        include = ["-include-pch", str(precompiled)] if precompiled else []
        return self.compile([*arguments, *include], source, ".o", self.of_any_folder)[1]


def main():
    root, build, work = (pathlib.Path(sys.argv[i]).absolute() for i in (1, 2, 4))
    tree = structure_test.Tree(root, build, sys.argv[3])
    checker = Checker(root, work)
    seen, headers = commands(tree)
    sources = {source: split(arguments) for source, arguments in seen.items()}
    if not sources:
        sys.exit(f"{build}: no source that sees an annotation is built there; run scripts/build first")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = {header: pool.submit(checker.precompile, header, arguments) for header, arguments in headers.items()}
        precompiled = {header: job.result() for header, job in made.items()}
        jobs = {source: pool.submit(checker.check, root / source, arguments, precompiled.get(header))
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
