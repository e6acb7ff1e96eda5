"""Writes the software bill of materials of a release: CycloneDX 1.6, JSON.

usage: sbom.py --version VERSION --out FILE --part BUILD:TARGET=FILE...

Each part is a program or library of ours; under it are the Debian packages of which something is inside, as the build's own
records say (inputs.py), with their versions, and LibTorch where it is used, which the user brings.
"""

import argparse
import pathlib
import subprocess

import inputs
from cyclonedx.model import ExternalReference, ExternalReferenceType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

TORCH = "2.11.0"  # scripts/libtorch-requirements.txt


def component_of(package):
    """A Debian package as a component; its purl names the source package."""
    qualifiers = {"arch": package.architecture, "distro": "debian-12", "upstream": f"{package.source}@{package.source_version}"}
    url = PackageURL("deb", "debian", package.name, package.version, qualifiers)
    references = [ExternalReference(type=ExternalReferenceType.WEBSITE, url=XsUri(package.homepage))] if package.homepage else []
    return Component(name=package.name, version=package.version, type=ComponentType.LIBRARY, purl=url, bom_ref=url.to_string(),
                     supplier=OrganizationalEntity(name="Debian"), external_references=references)


def torch_component():
    url = PackageURL("pypi", None, "torch", TORCH)
    return Component(name="torch", version=TORCH, type=ComponentType.LIBRARY, purl=url, bom_ref=url.to_string())


def asks_for_torch(file):
    said = subprocess.run(["readelf", "-dW", file], capture_output=True, text=True, check=True).stdout
    return "[libtorch_cpu.so]" in said


def bill(version, parts):
    """parts: (build folder, target, file) each."""
    release = Component(name="distro", version=version, type=ComponentType.APPLICATION, bom_ref=f"distro@{version}")
    bom = Bom()
    bom.metadata.component = release
    known, own = {}, []
    for build, target, file in parts:
        part = Component(name=target, version=version, bom_ref=f"{target}@{version}", type=(
            ComponentType.LIBRARY if file.suffix == ".so" else ComponentType.APPLICATION))
        needs = [known.setdefault(package, component_of(package)) for package in inputs.packages(inputs.files(build, target, file))]
        if asks_for_torch(file):
            needs.append(known.setdefault("torch", torch_component()))
        for item in (part, *needs):
            bom.components.add(item)
        bom.register_dependency(part, needs)
        own.append(part)
    bom.register_dependency(release, own)
    return JsonV1Dot6(bom).output_as_string(indent=2)


def part(text):
    place, _, file = text.partition("=")
    build, _, target = place.rpartition(":")
    return pathlib.Path(build), target, pathlib.Path(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--part", type=part, action="append", required=True)
    options = parser.parse_args()
    options.out.write_text(bill(options.version, options.part) + "\n")


if __name__ == "__main__":
    main()
