"""docs/troubleshooting.md, "Python programs", has the messages of the package word for word."""
import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "troubleshooting.md").read_text()
SECTION = re.search(r"^## Python programs\n(.*?)^## ", PAGE, re.M | re.S)[1]


def row_of(message):
    """The class in the row that has the message; what differs from case to case is in capitals there. None: no row has it."""
    words = re.sub(r"'[^']+'|\"[^\"]+\"", "NAME", message)
    words = re.sub(r"(?<!rank )\b\d+(\.\d+)?\b", "N", words)
    words = re.sub(r"a \w+ has no length", "a TYPE has no length", words)
    for row in SECTION.splitlines():
        if f"`{words}`" in row:
            return row.split(" | ")[2].strip("` |")
    return None


def classes_by_code():
    """[(exit code, class)] of the table of exceptions."""
    found = []
    for first, last, names in re.findall(r"^\| (\d+)(?: to (\d+))? \| (`\w+`(?:, `\w+`)*) \|$", PAGE, re.M):
        found += [(code, name) for code in range(int(first), int(last or first) + 1) for name in re.findall(r"\w+", names)]
    return found


def reasons_by_code():
    """{exit code of distro-worker: the reasons in docs/worker.md}"""
    section = (DOCS / "worker.md").read_text().partition("## Exit codes\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| ([^|]*) \|", section, re.M)
    return {int(code): re.findall(r"`([a-z_]+)`", text.split(":")[0]) for code, text in rows}
