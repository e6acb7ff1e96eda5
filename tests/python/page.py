"""docs/troubleshooting.md, "Python programs", has the messages of the package word for word."""
import pathlib
import re

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md").read_text()
SECTION = re.search(r"^## Python programs\n(.*?)^## ", PAGE, re.M | re.S)[1]


def row_of(message):
    """The class in the row that has the message; what differs from case to case is in capitals there. None: no row has it."""
    words = re.sub(r"'[^']+'", "NAME", message)
    words = re.sub(r"(?<!rank )\b\d+(\.\d+)?\b", "N", words)
    words = re.sub(r"a \w+ has no length", "a TYPE has no length", words)
    for row in SECTION.splitlines():
        if f"`{words}`" in row:
            return row.split(" | ")[2].strip("`")
    return None
