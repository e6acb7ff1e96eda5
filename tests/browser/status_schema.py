"""The table of docs/status_page.md as a check of an answer of /status.json."""
import re

TYPES = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "array of [round, loss]": lambda value: isinstance(value, list) and all(
        len(point) == 2 and all(map(TYPES["number"], point)) for point in value),
}
TYPES["number or null"] = lambda value: value is None or TYPES["number"](value)


def documented(page):
    """{path: type} of the table."""
    return dict(re.findall(r"^\| `([a-z_.\[\]]+)` \| ([^|]+) \|", page, re.MULTILINE))


def fields(value, types, path=""):
    """(path, value) of every field; arrays that have a row of their own are values."""
    if path in types or not isinstance(value, (dict, list)):
        yield path, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from fields(part, types, f"{path}.{name}" if path else name)
    else:
        for part in value:
            yield from fields(part, types, path + "[]")


def faults(page, report):
    """What differs between the table and an answer; an array without entries tells nothing of its fields."""
    types, seen, found = documented(page), set(), []
    for path, value in fields(report, types):
        seen.add(path)
        if path not in types:
            found.append(f"{path} is not documented")
        elif not TYPES[types[path]](value):
            found.append(f"{path} is {value!r}, not {types[path]}")
    empty = {path.removesuffix("[]") for path, value in arrays(report) if not value}
    missing = [path for path in types if path not in seen and not any(path.startswith(array) for array in empty)]
    return found + [f"{path} is missing" for path in missing]


def arrays(value, path=""):
    if isinstance(value, dict):
        for name, part in value.items():
            yield from arrays(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        yield path + "[]", value
