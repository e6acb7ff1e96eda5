"""Text of others (names of files, columns, keys) for a terminal: what is not seen, or changes how the rest is seen, is escaped as
the programs in C++ do it (common/base/utf8.h, ShownText)."""

import unicodedata

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def shown(text, most=4000):
    cut = "" if len(text) <= most else f"... ({len(text)} characters)"
    return "".join(escaped(c) if unicodedata.category(c) in HIDDEN else c for c in text[:most]) + cut


def escaped(c):
    return NAMED.get(c) or (f"\\x{ord(c):02x}" if ord(c) < 0x7f else f"\\u{ord(c):04x}")
