#!/usr/bin/env python3
"""Makes the golden data of this folder, or checks that they are what it would make.

    python3 tests/golden/deltas/generate.py            writes them
    python3 tests/golden/deltas/generate.py --check    changes nothing; fails where a byte differs
"""
import json
import pathlib
import sys

import arrays
import coverage
import parts
import rounds
import sets

HERE = pathlib.Path(__file__).resolve().parent


def make():
    """{path: bytes} of everything."""
    made = {}
    for name, scenario in sets.SETS.items():
        coverage.check(name, scenario())
        played = rounds.Rounds(scenario())
        files = arrays.files(played.arrays())
        files["run.json"] = json.dumps(played.run, indent=2).encode() + b"\n"
        made |= {HERE / name / file: data for file, data in files.items()}
    for name, part in parts.PARTS.items():
        made |= {HERE / name / file: data for file, data in arrays.files(part()).items()}
    return made


def check(made):
    kept = {path for path in HERE.glob("*/*") if path.suffix in (".bin", ".json", ".txt")}
    wrong = [f"{path.relative_to(HERE)}: missing" for path in made.keys() - kept]
    wrong += [f"{path.relative_to(HERE)}: nothing makes it" for path in kept - made.keys()]
    wrong += [f"{path.relative_to(HERE)}: other bytes" for path in kept & made.keys()
              if path.read_bytes() != made[path]]
    size = sum(map(len, made.values()))
    print("\n".join(sorted(wrong)) or f"{len(made)} files of {size} bytes are as made")
    return not wrong


def main():
    made = make()
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if check(made) else 1)
    if sys.argv[1:]:
        sys.exit(__doc__)
    for path, data in made.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main()
