"""The commands of the README's "Operate it"."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks():
    """[(kind, commands)] in their order; kind is empty for commands that end, else it names what they start."""
    section = re.search(r"^## Operate it\n(.*?)^## ", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^```sh *(\w*)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def commands(kind):
    """Those of a kind, in their order."""
    return [text for one, text in blocks() if one == kind]
