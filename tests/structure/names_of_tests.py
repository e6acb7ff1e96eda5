"""Names of tests: a suite is the unit, a test says with a verb what must be true of it, as TEST(Round, RefusesLateUpdate)."""

import re

import rules

IN_CPP = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*\w+,\s*(\w+)\)", re.MULTILINE)
IN_PYTHON = re.compile(r"^ *def test_(\w+)\(", re.MULTILINE)
NO_VERB_IN_CPP = re.compile(f"({'|'.join(rules.NO_VERBS)})(?![a-z])")
NO_VERB_IN_PYTHON = re.compile(f"({'|'.join(rules.NO_VERBS).lower()})(?![a-z])")


def judge(source, text):
    """Complaints about tests of one file whose names begin with a word of rules.NO_VERBS."""
    names, no_verb = (IN_PYTHON, NO_VERB_IN_PYTHON) if source.endswith(".py") else (IN_CPP, NO_VERB_IN_CPP)
    return [f"{source}: the name of the test {name} begins with no verb" for name in names.findall(text) if no_verb.match(name)]


def check_test_names(tree):
    paths = [path for path in sorted((tree.root / "tests").rglob("*")) if path.suffix in (".cc", ".py")]
    complaints = [complaint for path in paths for complaint in judge(str(path.relative_to(tree.root)), path.read_text())]
    return complaints, f"tests of {len(paths)} files"
