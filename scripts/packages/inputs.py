"""Finds the Debian packages that are part of a program: the libraries that it links and the headers that it compiles.

    inputs.packages(inputs.files(build_dir, "distro-aggregator", build_dir / "bin/distro-aggregator"))

reads the build's own records (ninja: what a target is made of, and which headers each object read) and the shared libraries
that the loader finds, and asks dpkg whose files those are.
"""

import dataclasses
import functools
import pathlib
import re
import subprocess

SYSTEM = ("glibc", "linux")  # a program contains only their interface


@dataclasses.dataclass(frozen=True, order=True)
class Package:
    """A binary package of this machine. `source` and `source_version` name what it was built from."""

    name: str
    version: str
    source: str
    source_version: str
    architecture: str
    homepage: str

    @property
    def copyright_file(self):
        return pathlib.Path("/usr/share/doc") / self.name / "copyright"


def output_of(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout


def target_inputs(build, target):
    """All input files of the target, according to ninja; objects relative to the build folder."""
    return set(output_of("ninja", "-C", build, "-t", "inputs", target).splitlines())


@functools.cache
def headers(build):
    """Object -> the headers that the compiler read for it."""
    read, current = {}, None
    for line in output_of("ninja", "-C", build, "-t", "deps").splitlines():
        if line.startswith("    "):
            read[current].add(line.strip())
        elif line:
            current = line.split(":", 1)[0]
            read[current] = set()
    return read


def loaded(file):
    """The shared libraries that the loader finds for a program or library."""
    return set(re.findall(r"=> (/\S+)", output_of("ldd", file)))


def cuda_toolkit(build):
    """The folder of NVIDIA's toolkit, if the build has CUDA and the toolkit is a folder of its own; otherwise None."""
    cudart = re.search(r"^CUDA_CUDART:FILEPATH=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    parents = pathlib.Path(cudart[1]).resolve().parents if cudart else ()
    folder = next((parent for parent in parents if (parent / "bin/nvcc").is_file()), None)
    return None if folder == pathlib.Path("/usr") else folder


def files(build, target, output):
    """The files outside the checkout that are in `output`, the program or library of `target`. Without NVIDIA's, which no
    package owns: a program has inline code of its headers, and gets its libraries from LibTorch.
    """
    made_of = target_inputs(build, target)
    read = headers(build)
    found = set(made_of) | loaded(output)
    for item in made_of:
        found |= read.get(item, set())
    system = {path for path in found if path.startswith(("/usr/", "/lib/", "/lib64/"))}
    toolkit = cuda_toolkit(build)
    return {path for path in system if toolkit is None or toolkit not in pathlib.Path(path).resolve().parents}


def owners(paths):
    """The names of the packages that own these files. Files that no package owns are the machine's own: an error."""
    real = sorted({str(pathlib.Path(path).resolve()) for path in paths})
    done = subprocess.run(["dpkg", "-S", *real], capture_output=True, text=True)
    names, known = set(), set()
    for line in done.stdout.splitlines():
        owner, _, path = line.partition(": ")
        names |= {part.strip() for part in owner.split(",")}
        known.add(path)
    # A package may own the file under /lib, from before /lib became a link.
    missing = [path.removeprefix("/usr") for path in real if path not in known]
    if missing:
        done = subprocess.run(["dpkg", "-S", *missing], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"no Debian package owns {done.stderr.strip()}")
        names |= {part.strip() for line in done.stdout.splitlines() for part in line.partition(": ")[0].split(",")}
    return names


FIELDS = ("${Package}", "${Version}", "${source:Package}", "${source:Version}", "${Architecture}", "${Homepage}")


def packages(paths):
    """The packages of the files, by name."""
    names = sorted(owners(paths))
    rows = output_of("dpkg-query", "-W", "-f", "\t".join(FIELDS) + "\n", *names).splitlines()
    return sorted(Package(*row.split("\t")) for row in rows)
