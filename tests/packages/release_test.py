"""The files of a release besides packages: the archive of programs, the chart, the bill of materials, the sums."""

import json
import pathlib
import subprocess

import helm_python
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def test_tarball_needs_nothing_else(one, torch):
    command = [SOURCE / "tests/packages/check_tarball", "--archive", one("distro-*-linux-x86_64.tar.gz"), "--torch", torch]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "programs distro-aggregator distro-archiver distro-worker distroctl" in done.stdout


def test_sums(packages):
    done = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=packages, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = {line.split(None, 1)[1] for line in (packages / "SHA256SUMS").read_text().splitlines()}
    assert listed | {"SHA256SUMS"} == {path.name for path in packages.iterdir()}


def test_chart_is_that_of_the_sources(one):
    with helm_python.Chart.load_archive(one("distro-[0-9]*.tgz").read_bytes()) as packed:
        with helm_python.Chart.load(str(SOURCE / "helm/distro")) as source:
            assert packed.version == source.version
            values = {"insecure": True, "image": {"registry": "registry.example"}}
            assert packed.render(values) == source.render(values)


def test_monitoring_chart_has_what_is_generated(one):
    with helm_python.Chart.load_archive(one("distro-monitoring-*.tgz").read_bytes()) as packed:
        packed.render({})  # which fails without


@pytest.fixture(scope="module")
def bill(one):
    return json.loads(one("distro-*.cdx.json").read_text())


def test_bill_is_valid(one):
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(one("distro-*.cdx.json").read_text()) is None


def test_bill_names_what_is_inside_each_program(bill):
    names = {item["bom-ref"]: item["name"] for item in bill["components"]}
    inside = {names.get(item["ref"], "distro"): {names[ref] for ref in item.get("dependsOn", [])} for item in bill["dependencies"]}
    assert inside["distro"] == {"distro-aggregator", "distro-archiver", "distroctl", "distro-worker", "distro_train"}
    for part in inside["distro"]:
        assert {"libabsl-dev", "libgrpc-dev", "libprotobuf-dev", "libssl3"} <= inside[part], part
        assert ("torch" in inside[part]) == (part in ("distro-worker", "distro_train")), part
    assert "libprometheus-cpp-core1.0" in inside["distro-aggregator"]


def test_bill_has_the_versions_of_this_machine(bill):
    """Versions and sources as dpkg has them; of each a purl."""
    components = {item["name"]: item for item in bill["components"]}
    for name in ("libgrpc++-dev", "libssl3"):
        version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True, check=True).stdout
        assert components[name]["version"] == version
        assert components[name]["purl"].startswith(f"pkg:deb/debian/{name.replace('+', '%2B')}@")
