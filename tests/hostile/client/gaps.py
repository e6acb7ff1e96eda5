"""Bodies in gaps (docs/payload_format.md, kinds 2 and 3): what an encoder makes of blocks, and back. `numbers_of` and
`body_of` are apart so that a test can change the numbers, or the codes, between them."""
import struct

from client.bits import BitReader, BitWriter
from client.prefix_code import ALPHABETS, canonical, code_lengths, read_lengths, write_lengths

GROUP_BLOCKS, MAX_ONES = 256, 1023


def _runs(group):
    """Lists of blocks that follow each other with the same count of entries."""
    runs = []
    for block in group:
        if runs and len(runs[-1][0]) == len(block):
            runs[-1].append(block)
        else:
            runs.append([block])
    return runs


class _Ones:
    """Where `ones` stands, and which entry ends with a magnitude."""

    def __init__(self, values):
        self._values, self._at, self._pending, self._larger_next = values, 0, 0, False

    def next(self):
        """(number of `ones` or None, magnitude or None) of the next entry."""
        ones = None
        if not self._pending and not self._larger_next:
            rest = self._values[self._at:self._at + MAX_ONES]
            ones = next((i for i, value in enumerate(rest) if abs(value) != 1), len(rest))
            self._pending, self._larger_next = ones, ones < MAX_ONES and self._at + ones < len(self._values)
        value = self._values[self._at]
        self._at += 1
        if self._pending:
            self._pending -= 1
            return ones, None
        self._larger_next = False
        return ones, abs(value) - 2


def numbers_of(group):
    """The (alphabet, number, sign or None) of a group in order."""
    numbers = []
    ones_of = _Ones([value for block in group for _, value in block])
    for run in _runs(group):
        numbers += [("repeats", len(run) - 1, None), ("counts", len(run[0]), None)]
        for block in run:
            before = -1
            for position, value in block:
                ones, magnitude = ones_of.next()
                if ones is not None:
                    numbers.append(("ones", ones, None))
                numbers.append(("gaps", position - before - 1, value < 0))
                if magnitude is not None:
                    numbers.append(("magnitudes", magnitude, None))
                before = position
    return numbers


def lengths_of(groups):
    """{alphabet: {symbol: bits}} of the numbers of all groups."""
    counts = {name: {} for name in ALPHABETS}
    for name, number, _ in (item for group in groups for item in group):
        symbol = ALPHABETS[name].bucket(number)[0]
        counts[name][symbol] = counts[name].get(symbol, 0) + 1
    return {name: code_lengths(counts[name]) for name in ALPHABETS}


def body_of(groups, lengths):
    """The body of groups of numbers with these code lengths."""
    tables = BitWriter()
    for name, alphabet in ALPHABETS.items():
        write_lengths(tables, lengths[name], alphabet.symbols)
    codes = {name: canonical(lengths[name]) for name in ALPHABETS}
    coded = []
    for group in groups:
        out = BitWriter()
        for name, number, sign in group:
            symbol, raw, raw_bits = ALPHABETS[name].bucket(number)
            out.write(*codes[name][symbol])
            if sign is not None:
                out.write(int(sign), 1)
            out.write(raw, raw_bits)
        coded.append(out.bytes())
    return tables.bytes() + b"".join(struct.pack("<I", len(group)) for group in coded) + b"".join(coded)


def groups_of(blocks):
    return [numbers_of(blocks[first:first + GROUP_BLOCKS]) for first in range(0, len(blocks), GROUP_BLOCKS)]


def encode_gaps(blocks):
    groups = groups_of(blocks)
    return body_of(groups, lengths_of(groups))


class _Decoder:
    def __init__(self, lengths, data):
        self._bits = BitReader(data)
        # The written form has the first bit lowest: a string of the bits in reading order is the reverse of the number's.
        self._symbols = {name: {f"{bits:0{count}b}"[::-1]: symbol for symbol, (bits, count) in canonical(lengths[name]).items()}
                         for name in ALPHABETS}
        self._alone = {name: next(iter(lengths[name])) for name in ALPHABETS if len(lengths[name]) == 1}
        self._ones, self._larger_next = 0, False

    def number(self, name, with_sign=False):
        symbol = self._alone.get(name)
        if symbol is None:
            code = ""
            while code not in self._symbols[name]:
                code += str(self._bits.read(1))
                if len(code) > 12:
                    raise ValueError("no such code")
            symbol = self._symbols[name][code]
        base, raw_bits = ALPHABETS[name].base(symbol)
        negative = with_sign and self._bits.read(1)
        number = base + self._bits.read(raw_bits)
        return (number, negative) if with_sign else number

    def block(self, count):
        block, position = [], -1
        for _ in range(count):
            if not self._ones and not self._larger_next:
                self._ones = self.number("ones")
                self._larger_next = self._ones < MAX_ONES
            gap, negative = self.number("gaps", with_sign=True)
            position += gap + 1
            if self._ones:
                self._ones -= 1
                magnitude = 1
            else:
                self._larger_next = False
                magnitude = self.number("magnitudes") + 2
            block.append((position, -magnitude if negative else magnitude))
        return block

    def blocks(self, count):
        blocks = []
        while len(blocks) < count:
            repeats, entries = self.number("repeats"), self.number("counts")
            for _ in range(repeats + 1):
                blocks.append(self.block(entries))
        return blocks


def decode_gaps(body, blocks):
    """The blocks of a body that an encoder made."""
    bits = BitReader(body)
    lengths = {name: read_lengths(bits, alphabet.symbols) for name, alphabet in ALPHABETS.items()}
    at = len(body) - bits.align()
    groups = (blocks + GROUP_BLOCKS - 1) // GROUP_BLOCKS
    sizes = struct.unpack_from(f"<{groups}I", body, at)
    at += 4 * groups
    decoded = []
    for size in sizes:
        decoded += _Decoder(lengths, body[at:at + size]).blocks(min(GROUP_BLOCKS, blocks - len(decoded)))
        at += size
    return decoded
