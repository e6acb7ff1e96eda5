#!/usr/bin/env python3
"""Makes the text of the long studies: English and code of Debian's packages, in which nothing stands twice.

  bench/convergence/text.py --out build/text        # downloads 75 MB with apt-get, writes build/text/text.txt

Documents are cut at empty lines; a part that stood before is left out. The documents' order is that of their SHA-256,
so that any piece of the text is of all kinds. Which packages of which version were used stands in packages.txt, beside
the text's SHA-256: an update of a package changes the text a little.
"""

import argparse
import hashlib
import pathlib
import re
import subprocess
import sys

# Package -> the files of it that are read.
SOURCES = {
    "linux-doc-6.1": r"/_sources/.*\.txt$",
    "python3.11-doc": r"/_sources/.*\.txt$",
    "cmake-doc": r"/_sources/.*\.txt$",
    "debian-policy": r"/_sources/.*\.txt$",
    "developers-reference": r"/_sources/.*\.txt$",
    "git-doc": r"\.txt$",
    "perl-doc": r"\.pod$",
    "perl-modules-5.36": r"\.(pm|pod)$",
    "libpython3.11-stdlib": r"\.py$",
    "libpython3.11-testsuite": r"\.py$",
    "python3-sympy": r"\.py$",
}
# Tables, and texts in other languages.
NOT_READ = re.compile(r"/(unicore|translations|cjkencodings|encodings)/|/(CP|MAC|ISO|JIS|BIG5|GB)[^/]*$")
SHORTEST = 40  # bytes of a part that is compared with earlier ones: shorter ones are headings and braces
MOST_OF_A_FILE = 1 << 20  # longer ones are data


def download(packages, folder):
    folder.mkdir(parents=True, exist_ok=True)
    missing = [p for p in packages if not list(folder.glob(f"{p}_*.deb"))]
    if missing:
        print(f"downloading {len(missing)} packages", file=sys.stderr, flush=True)
        subprocess.run(["apt-get", "download", *missing], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return {p: next(folder.glob(f"{p}_*.deb")) for p in packages}


def documents(archive, pattern, unpacked):
    if not unpacked.exists():
        unpacked.parent.mkdir(exist_ok=True)
        subprocess.run(["dpkg-deb", "-x", archive, unpacked], check=True)
    for path in sorted(unpacked.rglob("*")):
        name = str(path.relative_to(unpacked))
        if path.is_symlink() or not path.is_file() or not re.search(pattern, name) or NOT_READ.search(name):
            continue
        data = path.read_bytes().replace(b"\r\n", b"\n")
        if 0 < len(data) <= MOST_OF_A_FILE and is_text(data):
            yield data


def is_text(data):
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def without_repeats(document, seen):
    """The document's parts, without those in `seen`, to which it adds its own."""
    kept = []
    for part in re.split(rb"\n(?:[ \t]*\n)+", document.strip(b"\n")):
        digest = hashlib.sha256(b" ".join(part.split())).digest()[:16]
        if len(part) >= SHORTEST and digest in seen:
            continue
        seen.add(digest)
        kept.append(part)
    return b"\n\n".join(kept)


def make_text(archives, folder):
    read = [
        document
        for package, archive in archives.items()
        for document in documents(archive, SOURCES[package], folder / "unpacked" / package)
    ]
    seen = set()
    kept = [without_repeats(d, seen) for d in sorted(read, key=lambda d: hashlib.sha256(d).digest())]
    return b"\n\n".join(d for d in kept if len(d) >= SHORTEST) + b"\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a folder")
    folder = parser.parse_args().out
    archives = download(SOURCES, folder / "packages")
    text = make_text(archives, folder)
    (folder / "text.txt").write_bytes(text)
    names = "".join(f"{archive.name}\n" for archive in archives.values())
    (folder / "packages.txt").write_text(f"{names}text.txt {len(text)} bytes {hashlib.sha256(text).hexdigest()}\n")
    print(f"{folder / 'text.txt'}: {len(text) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
