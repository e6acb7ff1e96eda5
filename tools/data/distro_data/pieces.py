"""Cuts long documents into pieces, so that memory is bounded. Pure.

Each piece is encoded by itself, so the cut is part of what makes the tokens: the same for every input format and every
number of processes. It falls where tokenizers separate words anyway.
"""

PIECE_BYTES = 1 << 18

_SPACE = b" \t\r\n"


def first_piece(text, limit=PIECE_BYTES):
    """The length of the first piece of `text`: all of it up to `limit` bytes; else the most of `limit` bytes that end

    1. after a newline before something that is no white space,
    2. before a space,
    3. before a character.

    Only the first limit + 1 bytes decide. `text` is UTF-8; of other bytes a piece ends somewhere within the limit.
    """
    if len(text) <= limit:
        return len(text)
    at = text.rfind(b"\n", 0, limit)
    while at >= 0 and text[at + 1] in _SPACE:
        at = text.rfind(b"\n", 0, at)
    if at >= 0:
        return at + 1
    at = text.rfind(b" ", 1, limit)
    if at > 0:
        return at
    at = limit
    while at > limit - 4 and text[at] & 0xC0 == 0x80:
        at -= 1
    return at


def cut(text, limit=PIECE_BYTES):
    """The pieces of a document, in order; none of an empty one."""
    at = 0
    while at < len(text):
        length = first_piece(text[at:at + limit + 1], limit)
        yield text[at:at + length]
        at += length
