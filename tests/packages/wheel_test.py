"""The wheel: its content, and that it trains in bare roots with every supported Python."""

import email
import json
import pathlib
import re
import subprocess
import zipfile

import pytest
from packaging.requirements import Requirement

from processes import Worker

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = SOURCE / "tests/python"
LIBRARIES = [f"pytorch-{versions}/libdistro_train.so" for versions in ("2.10-2.12", "2.13-2.15")]
# What `import torch` needs beside its own libraries and NVIDIA's.
TORCH = ("torch==2.11.0", "filelock", "fsspec", "jinja2", "networkx", "sympy", "typing-extensions", "mpmath<1.4", "markupsafe", "setuptools", "safetensors")


@pytest.fixture(scope="module")
def wheel(one):
    return one("distro_train-*.whl")


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def dynamic(library, tag):
    """The values of a tag of an ELF file's dynamic section."""
    said = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True, check=True).stdout
    return re.findall(rf"\({tag}\).*\[(.*)\]", said)


def version():
    return re.search(r"project\(distro VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]


def test_wheel_is_for_any_python(wheel):
    assert re.fullmatch(rf"distro_train-{re.escape(version())}-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name)


def test_metadata(unpacked):
    about = email.message_from_string((next(unpacked.glob("*.dist-info")) / "METADATA").read_text())
    assert (about["Name"], about["Version"], about["Requires-Python"]) == ("distro-train", version(), ">=3.10")
    assert about["License-Expression"] == "Apache-2.0" and about["Summary"]
    assert [Requirement(line) for line in about.get_all("Requires-Dist")] == [Requirement("torch>=2.10,<2.16"), Requirement("safetensors>=0.4")]
    classifiers = about.get_all("Classifier")
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (10, 11, 12, 13)} <= set(classifiers)
    assert "Typing :: Typed" in classifiers
    assert "import distro_train" in about.get_payload()


def test_contents(unpacked):
    package = {str(path.relative_to(unpacked)) for path in (unpacked / "distro_train").rglob("*") if path.is_file()}
    sources = {f"distro_train/{path.relative_to(SOURCE / 'worker/python/distro_train')}"
               for path in (SOURCE / "worker/python/distro_train").rglob("*") if path.suffix in (".py", ".typed")}
    assert package == sources | {f"distro_train/{name}" for name in LIBRARIES}
    assert {path.name for path in unpacked.iterdir()} == {"distro_train", "distro_train.libs", f"distro_train-{version()}.dist-info"}
    licences = next(unpacked.glob("*.dist-info")) / "licenses"
    assert "Apache License" in (licences / "LICENSE").read_text()
    notices = (licences / "THIRD_PARTY_LICENSES").read_text()
    for source in ("abseil", "grpc", "openssl", "protobuf", "re2"):
        assert re.search(rf"^={{20,}}\n{source} \S+\n={{20,}}$", notices, re.M), source


def test_libraries_ask_for_the_system_and_torch_only(unpacked):
    """The system: what every wheel of manylinux may ask for, zlib among it, which Python has."""
    libraries = [*(unpacked / "distro_train" / name for name in LIBRARIES), *(unpacked / "distro_train.libs").iterdir()]
    bundled = {path.name for path in libraries}
    for library in libraries:
        for name in dynamic(library, "NEEDED"):
            assert name in bundled or re.fullmatch(
                r"ld-linux-x86-64\.so\.2|lib(c|m|dl|rt|pthread|z|gcc_s|stdc\+\+|torch_cpu|c10)\.so(\.\d+)?", name), f"{library.name}: {name}"
        for path in ":".join(dynamic(library, "RPATH") + dynamic(library, "RUNPATH")).split(":"):
            assert path == "" or path.startswith("$ORIGIN"), f"{library.name} looks for libraries in {path}"
        symbols = subprocess.run(["readelf", "--version-info", library], capture_output=True, text=True, check=True).stdout
        newest = max((int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", symbols)), default=0)
        assert newest <= 34, f"{library.name} needs glibc 2.{newest}"


def install_torch(root):
    """PyTorch for the root's Python, from PyPI with the root's pip; NVIDIA's libraries, which are the same files for every
    Python, are shown to it out of .deps/pytorch, so that a root costs no 2 GB of download."""
    root.install("python3", "python3-venv", "libgomp1")
    root.run("python3", "-m", "venv", "/venv")
    python = "/venv/bin/python"
    assert root.run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip() == root.suite.python
    root.pip(python, "install", "--no-deps", *TORCH)
    site = root.run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    root.bind(next(SOURCE.glob(".deps/pytorch/lib/python3*/site-packages/nvidia")), f"{site}/nvidia")
    return python


@pytest.fixture(scope="module")
def python(root, wheel):
    """The Python of a root in which the wheel is installed."""
    inside = install_torch(root)
    root.bind(wheel.parent, "/packages")
    # --no-deps, since NVIDIA's packages have no metadata there; what the wheel asks for is looked at in its metadata.
    root.pip(inside, "install", "--no-deps", "--no-index", f"/packages/{wheel.name}")
    root.bind(PROGRAMS, "/programs")
    return inside


def start(workspace, root, python, name, aggregator, *flags):
    command = root.command(python, "-B", "/programs/train.py", "--aggregator", aggregator.grpc, "--name", name, "--text",
                           workspace.text, "--summary", workspace.folder / f"{name}.json", *flags)
    worker = Worker(name, command, workspace.folder)
    workspace.processes.append(worker)
    return worker


def losses(worker):
    return [float(loss) for loss in re.findall(r"step loss=(\S+)", worker.out_path.read_text())]


def finish(workspace, workers):
    for worker in workers:
        assert worker.exit_code() == 0, workspace.logs()
    assert len({worker.summary()["state_hash"] for worker in workers}) == 1


def test_uses_no_library_of_debian(root, python):
    """What is bundled is not installed, and loads all the same."""
    assert not [path for path in root.folder.glob("usr/lib/x86_64-linux-gnu/*") if re.match(r"lib(grpc|absl|protobuf|prometheus)", path.name)]
    said = root.run(python, "-c", "import distro_train; print(open('/proc/self/maps').read())")
    loaded = set(re.findall(r"(/\S+\.so\S*)", said))
    assert any("/distro_train.libs/libgrpc" in path for path in loaded)
    assert len([path for path in loaded if path.endswith("libtorch_cpu.so")]) == 1


def test_workers_of_wheel_train(root, python, workspace):
    """A module that is no Llama, 30 rounds: equal hashes, a lower loss."""
    root.run(python, "-c", "import sys; sys.path.insert(0, '/programs'); import distro_train, plain; model = plain.Plain(); "
             f"distro_train.save_initial(model, '{workspace.folder}/plain', outside=model.OUTSIDE)")
    aggregator = workspace.start_aggregator(
        "--run", workspace.write_run(workers="python", rounds=30, start_workers=2, min_workers=2, peak_learning_rate=0.01),
        "--model", workspace.folder / "plain")
    workers = [start(workspace, root, python, name, aggregator) for name in ("one", "two")]
    finish(workspace, workers)
    seen = losses(workers[0])
    assert sum(seen[-8:]) / 8 < sum(seen[:8]) / 8 - 0.3, seen


def test_beside_a_worker_of_the_tarball(root, python, workspace):
    """A Llama of the wheel in the root and one in C++ outside of it, in one run."""
    aggregator = workspace.create_run(rounds=20, start_workers=2, min_workers=2, peak_learning_rate=0.01)
    native = workspace.start_worker("native", aggregator.grpc)
    inside = start(workspace, root, python, "inside", aggregator, "--config", workspace.folder / "config.json")
    finish(workspace, [native, inside])
    assert json.loads((workspace.folder / "inside.json").read_text())["updates_sent"] == 20
