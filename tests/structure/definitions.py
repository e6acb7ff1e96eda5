"""Which types and constants a file defines in which namespace, by its text: one name, one definition in the whole tree.

Two definitions of one name in one namespace that are linked into one program are undefined behaviour, and neither the
compiler nor the linker says so. Names in unnamed namespaces are a file's own and not looked at; nor are functions, which
may be overloaded over several files and of which the linker finds doubles.
"""

import re

NOISE = re.compile(
    r"""//[^\n]*|/\*.*?\*/                              # comments
    |R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"               # raw strings
    |"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'  # strings, characters
    |^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*                     # the preprocessor
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
ATTRIBUTE = r"(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*|ABSL_[A-Z_]+(?:\([^)]*\))?\s*)*"
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\s*([\w:]*)\s*$")
TYPE = re.compile(
    r"(?:^|[\s>])(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+" + ATTRIBUTE + r"(\w+)(?:\s+final)?\s*(?::(?!:).*)?$",
    re.DOTALL,
)
ALIAS = re.compile(r"^\s*using\s+(\w+)\s*=")
CONSTANT = re.compile(r"^\s*(?:inline\s+)?(?:constexpr|constinit|const)\b[^=]*?\b(k[A-Z]\w*)\s*(?:\[[^\]]*\]\s*)*(?:=|$)")


def definitions(text):
    """Yields (namespace, name) for each type, alias and constant that `text` defines in a named namespace."""
    scopes = []  # of each open brace: the namespace's name ("" for an unnamed one), or None for anything else
    words = ""
    for part in re.split(r"([{};])", NOISE.sub(" ", text)):
        if part == "{":
            inside = NAMESPACE.search(words.strip())
            if not inside:
                yield from defined_by(scopes, words, opens=True)
            scopes.append(inside.group(1) if inside else None)
            words = ""
        elif part == "}":
            if scopes:
                scopes.pop()
            words = ""
        elif part == ";":
            yield from defined_by(scopes, words, opens=False)
            words = ""
        else:
            words += part


def defined_by(scopes, words, opens):
    if any(not scope for scope in scopes) or "template <>" in words or "template<>" in words:
        return
    patterns = (TYPE, CONSTANT) if opens else (ALIAS, CONSTANT)
    for pattern in patterns:
        found = pattern.search(words)
        if found:
            yield "::".join(scopes), found.group(1)
            return
