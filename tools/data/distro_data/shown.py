"""Text of others (names of files, columns, keys) for a terminal: what is not seen, or changes how the rest is seen, is escaped as
the programs in C++ do it (common/base/utf8.h, ShownText)."""

import unicodedata

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def shown(text, most=4000):
    cut = "" if len(text) <= most else f"... ({len(text)} characters)"
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in HIDDEN else c for c in text[:most]) + cut
