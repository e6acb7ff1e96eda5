"""Updates in gaps that break docs/payload_format.md, each in one way: what `breakages` names is never what an encoder makes."""
import random
import struct

from client import payload as payloads
from client.gaps import body_of, decode_gaps, encode_gaps, groups_of, lengths_of
from client.session import random_blocks

SIZES_OF_ONE_GROUP, TABLE_PARTS = 4, 12


class Maker:
    """Makes broken payloads of one segment."""

    def __init__(self, layout, round_number, segment, blocks, k, seed):
        self.random = random.Random(seed)
        self.k, self.count = k, blocks
        self.blocks = random_blocks(self.random, blocks, k)
        self._head = (payloads.UPDATE_GAPS, k, layout, round_number, segment, blocks)

    def groups(self, blocks=None):
        return groups_of(self.blocks if blocks is None else blocks)

    def body(self, blocks=None):
        groups = self.groups(blocks)
        return body_of(groups, lengths_of(groups))

    def whole(self, body=None, **changes):
        head = dict(zip(("kind", "k", "layout", "round_number", "segment", "blocks"), self._head), **changes)
        return payloads.frame(body=self.body() if body is None else body, **head)

    def header_bytes(self, at, data):
        """The payload with other bytes in its header and a checksum that holds."""
        return payloads.with_bytes(self.whole(), at, data)

    def of_numbers(self, change):
        """A body of changed numbers whose codes are right for them."""
        groups = self.groups()
        change(groups[0])
        return self.whole(body_of(groups, lengths_of(groups)))

    def with_a_bit_of_the_tables(self, at, seed):
        """One bit of a byte of the tables changed, such that it is no other update: one that moves all later symbols is."""
        for bit in range(8):
            whole = _flip(self.whole(), payloads.HEADER.size + at, (seed + bit) % 8)
            if not self.is_an_update(payloads.unframe(whole)[1]):
                return whole
        raise AssertionError("every bit makes another update")

    def is_an_update(self, body):
        """Whether an encoder makes this body."""
        try:
            blocks = decode_gaps(body, self.count)
        except (ValueError, KeyError, IndexError, struct.error):
            return False
        fits = all(len(block) in (0, self.k) and block[-1][0] < payloads.POSITIONS for block in blocks if block)
        return fits and all(abs(value) == 1 for block in blocks for _, value in block) and encode_gaps(blocks) == body

    def of_lengths(self, change):
        """A body whose codes are not those of its numbers."""
        groups = self.groups()
        lengths = lengths_of(groups)
        change(lengths)
        return self.whole(body_of(groups, lengths))

    def tables_bytes(self):
        """Where the table of sizes begins in a body of one group: the number there is what is left after it."""
        body = self.body()
        return next(at for at in range(len(body) - SIZES_OF_ONE_GROUP, -1, -1)
                    if struct.unpack_from("<I", body, at)[0] == len(body) - at - SIZES_OF_ONE_GROUP)


def _entries(blocks, count):
    """The blocks with so many entries in the first."""
    positions = sorted(random.Random(count).sample(range(payloads.POSITIONS), count))
    return [[(position, 1) for position in positions], *blocks[1:]]


def _split_run(numbers):
    """The first run as two runs of the same count."""
    repeats, counts = numbers[0], numbers[1]
    first_block = []
    left = counts[1]
    for item in numbers[2:]:
        if item[0] == "gaps":
            left -= 1
        first_block.append(item)
        if left == 0:
            break
    rest = numbers[2 + len(first_block):]
    numbers[:] = [("repeats", 0, None), counts, *first_block, ("repeats", repeats[1] - 1, None), counts, *rest]


def _set_number(name, value):
    def change(numbers):
        at = next(i for i, item in enumerate(numbers) if item[0] == name)
        numbers[at] = (name, value, numbers[at][2])
    return change


def _short_ones(numbers):
    """`ones` that ends one entry early and begins again."""
    at = next(i for i, item in enumerate(numbers) if item[0] == "ones")
    ones = numbers[at][1]
    gaps = [i for i, item in enumerate(numbers) if item[0] == "gaps"]
    numbers[at] = ("ones", ones - 1, None)
    numbers.insert(gaps[-1], ("ones", 1, None))


def _longer(name):
    def change(lengths):
        used = lengths[name]
        symbol = max(used, key=used.get)
        used[symbol] += 1
    return change


def _more_symbols(lengths):
    """Codes of symbols that no number uses: more than fit 12 bits."""
    lengths["gaps"] = dict.fromkeys(range(768), 12) | dict.fromkeys(range(8), 1)


def _flip(whole, at, bit):
    return payloads.with_bytes(whole, at, bytes([whole[at] ^ 1 << bit]))


def breakages(layout, round_number, segment, blocks, k, seed):
    """Yields (name, what makes the payload)."""
    make = Maker(layout, round_number, segment, blocks, k, seed)
    body, head = make.body(), payloads.HEADER.size
    tables = make.tables_bytes()
    yield "checksum", lambda: make.whole()[:-1] + bytes([make.whole()[-1] ^ 1])
    yield "truncated", lambda: make.whole()[:-1]
    yield "a byte more", lambda: make.whole() + b"\0"
    yield "magic", lambda: make.header_bytes(0, b"DSTQ")
    yield "version 2", lambda: make.header_bytes(4, b"\2")
    yield "kind records", lambda: make.header_bytes(5, b"\1")
    yield "kind votes", lambda: make.header_bytes(5, b"\3")
    yield "kind 255", lambda: make.header_bytes(5, b"\xff")
    yield "K - 1 in the header", lambda: make.header_bytes(6, struct.pack("<H", k - 1))
    yield "K of 65535", lambda: make.header_bytes(6, b"\xff\xff")
    yield "another layout", lambda: make.header_bytes(8, bytes(8))
    yield "another round", lambda: make.whole(round_number=round_number + 1)
    yield "another segment", lambda: make.whole(segment=segment + 1)
    yield "a block more", lambda: make.whole(blocks=blocks + 1)
    yield "blocks of 2^32 - 1", lambda: make.header_bytes(28, b"\xff\xff\xff\xff")
    yield "length of 2^64 - 1", lambda: make.header_bytes(32, b"\xff" * 8)
    yield "no body", lambda: make.whole(b"")
    yield "half a body", lambda: make.whole(body[:len(body) // 2])
    yield "a body of zeros", lambda: make.whole(bytes(len(body)))
    yield "a body of ones", lambda: make.whole(b"\xff" * len(body))
    yield "a byte after the groups", lambda: make.whole(body + b"\0")
    yield "K - 1 entries", lambda: make.whole(make.body(_entries(make.blocks, k - 1)))
    yield "K + 1 entries", lambda: make.whole(make.body(_entries(make.blocks, k + 1)))
    yield "4096 entries", lambda: make.whole(make.body(_entries(make.blocks, 4096)))
    yield "a vote of 2", lambda: make.whole(make.body([[(p, 2) for p, _ in make.blocks[0]], *make.blocks[1:]]))
    yield "votes of 32767", lambda: make.whole(make.body([[(p, 32767) for p, _ in make.blocks[0]], *make.blocks[1:]]))
    yield "a position beyond 4095", lambda: make.of_numbers(_set_number("gaps", 4095))
    yield "a run of 256", lambda: make.of_numbers(_set_number("repeats", 255))
    yield "a run that stops early", lambda: make.of_numbers(_set_number("repeats", 0))
    yield "a run that could be longer", lambda: make.of_numbers(_split_run)
    yield "ones that end early", lambda: make.of_numbers(_short_ones)
    yield "ones beyond the group", lambda: make.of_numbers(_set_number("ones", 1023))
    yield "a code longer than needed", lambda: make.of_lengths(_longer("gaps"))
    yield "too many codes", lambda: make.of_lengths(_more_symbols)
    yield "a group of 2^32 - 1 bytes", lambda: make.whole(body[:tables] + b"\xff" * 4 + body[tables + 4:])
    yield "a group of no bytes", lambda: make.whole(body[:tables] + bytes(4) + body[tables + 4:])
    yield "padding of the group", lambda: _flip(make.whole(body[:-1] + bytes([body[-1]]) + b"\0"), head + tables, 0)
    for part in range(TABLE_PARTS):
        at = part * tables // TABLE_PARTS
        yield f"a bit of the tables, part {part} of {TABLE_PARTS}", lambda at=at: make.with_a_bit_of_the_tables(at, seed)
