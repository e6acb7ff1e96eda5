"""Where the programs and the text of first_day come from."""
import importlib.util
import pathlib
import shutil
import subprocess
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TEXT_BYTES = 64 << 20


def of_archive(archive, folder):
    """The programs of an archive of `scripts/package_programs --cuda --benchmarks`, unpacked into the folder, with the LibTorch
    of this Python. path of a program, by its name."""
    with tarfile.open(archive) as file:
        file.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4, and before in some distributions
        file.extractall(folder)
    (folder / "distro/torch").symlink_to(torch_folder())
    return lambda name: folder / "distro/bin" / name


def package_of(wheel, folder):
    """The folder with the package of a wheel, unpacked there; it needs no installation."""
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
    return folder


def of_build(build):
    """Those of a build folder of the preset cuda; a program that was not built is a path without a file."""
    def find(name):
        return next((path for path in build.rglob(name) if path.is_file()), build / "bin" / name)
    return find


def torch_folder():
    """Without importing it."""
    return pathlib.Path(importlib.util.find_spec("torch").origin).parent


def python_sources(out):
    """A text that every machine with PyTorch has: PyTorch's own Python files, joined in the order of their names."""
    with open(out, "wb") as file:
        for path in sorted(torch_folder().rglob("*.py")):
            if file.tell() > TEXT_BYTES:
                break
            file.write(path.read_bytes())
    return out


def version_of_archive(folder):
    """What the programs were made from."""
    return (folder / "distro/VERSION").read_text().strip()


def version_of_build():
    """The checkout's; without git that of the project."""
    if shutil.which("git"):
        described = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        if described.returncode == 0:
            return described.stdout.strip()
    line = next(line for line in (ROOT / "CMakeLists.txt").read_text().splitlines() if line.startswith("project(distro VERSION"))
    return line.split()[2]
