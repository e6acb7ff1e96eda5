"""The commands of docs/quickstart.md, "Over the internet", and of other pages."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks():
    """[(kind, commands)] in their order; kind is empty for commands that end, else it names what they start."""
    return blocks_of(re.search(r"^## Over the internet\n(.*?)^## ", (ROOT / "docs" / "quickstart.md").read_text(), re.MULTILINE | re.DOTALL)[1])


def blocks_of(text):
    """The same of any text."""
    return re.findall(r"^```sh *(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(kind):
    """Those of a kind, in their order."""
    return [text for one, text in blocks() if one == kind]
