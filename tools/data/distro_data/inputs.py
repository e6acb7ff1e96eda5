"""Lists the files of the command line's inputs, in order."""

import json
import os

from .errors import InputError
from .sources import ArrowFile, JsonLines, ParquetFile, TextFile, regular_file

FORMATS = ("text", "jsonl", "parquet")
BY_NAME = {".txt": "text", ".md": "text", ".pod": "text", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def open_inputs(paths, input_format, field):
    """A source for every file, in the order that they are read. InputError: one is not what it is taken for; all are looked at."""
    files = []
    for path in paths:
        if os.path.isdir(path):
            files += [ArrowFile(file, field) for file in dataset_files(path)]
        else:
            regular_file(path, "give files, or the folder of a dataset")
            files.append(open_file(path, format_of(path) if input_format == "auto" else input_format, field))
    seen = set()
    for file in files:
        if (real := os.path.realpath(file.path)) in seen:
            raise InputError(f"{file.path}: is given twice")
        seen.add(real)
    for file in files:
        file.check()
    return files


def open_file(path, kind, field):
    if kind == "text":
        return TextFile(path)
    return (JsonLines if kind == "jsonl" else ParquetFile)(path, field)


def format_of(path):
    kind = BY_NAME.get(os.path.splitext(path)[1].lower())
    if kind is None:
        raise InputError(f"{path}: the name does not tell the format ({', '.join(BY_NAME)} do, and a folder of a dataset); give"
                         f" --input_format {', '.join(FORMATS)}; what is compressed is to be unpacked first")
    return kind


def dataset_files(folder):
    """The Arrow files of a dataset that `datasets` saved with save_to_disk, in its order."""
    if not os.access(folder, os.R_OK | os.X_OK):
        raise InputError(f"{folder}: this folder cannot be read; have its permissions changed")
    if os.path.exists(os.path.join(folder, "dataset_dict.json")):
        splits = read_json(os.path.join(folder, "dataset_dict.json")).get("splits", [])
        raise InputError(f"{folder}: holds the splits {', '.join(map(str, splits))}; give the folder of one, as in"
                         f" {os.path.join(folder, str(splits[0]) if splits else 'train')}")
    state_path = os.path.join(folder, "state.json")
    if not os.path.exists(state_path):
        raise InputError(f"{folder}: is a folder without state.json, so no dataset of save_to_disk; give the files in it")
    state = read_json(state_path)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise InputError(f"{folder}: was saved with a selection of its rows beside it; save it again after flatten_indices()")
    try:
        names = [file["filename"] for file in state["_data_files"]]
        if not names or any(os.path.basename(name) != name for name in names):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{state_path}: names no files of its folder; save the dataset again") from None
    for name in names:
        if not os.path.isfile(os.path.join(folder, name)):
            raise InputError(f"{os.path.join(folder, name)}: {state_path} names this file, and it is not there; copy it again")
    return [os.path.join(folder, name) for name in names]


def read_json(path):
    try:
        with open(path, encoding="utf-8-sig") as file:
            value = json.load(file)
    except OSError as wrong:
        raise InputError(f"{path}: cannot be read: {wrong.strerror}") from None
    except ValueError as wrong:
        raise InputError(f"{path}: is not JSON: {wrong}; save the dataset again") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: is not a JSON object; save the dataset again")
    return value
