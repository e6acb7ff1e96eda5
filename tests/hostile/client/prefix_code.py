"""The prefix codes of gaps (docs/payload_format.md): buckets of numbers, optimal lengths of at most 12 bits, and how the
lengths are written."""

MAX_BITS, FIRST_LENGTH = 12, 6


class Alphabet:
    def __init__(self, symbols, mantissa):
        self.symbols, self.mantissa = symbols, mantissa

    def bucket(self, number):
        """(symbol, raw value, raw bits) of a number."""
        m = self.mantissa
        if number < 2 << m:
            return number, 0, 0
        raw = number.bit_length() - 1 - m
        return (2 << m) + (raw - 1) * (1 << m) + (number >> raw) - (1 << m), number & ((1 << raw) - 1), raw

    def base(self, symbol):
        """(smallest number, raw bits) of a symbol."""
        m = self.mantissa
        if symbol < 2 << m:
            return symbol, 0
        octave, step = divmod(symbol - (2 << m), 1 << m)
        return ((1 << m) + step) << (octave + 1), octave + 1


ALPHABETS = {"repeats": Alphabet(48, 3), "counts": Alphabet(145, 4), "gaps": Alphabet(768, 7), "ones": Alphabet(192, 5),
             "magnitudes": Alphabet(352, 5)}


def code_lengths(counts):
    """Length of each used symbol by package-merge; 0 of an only one. counts: {symbol: how often}."""
    if len(counts) < 2:
        return {symbol: 0 for symbol in counts}
    leaves = sorted((count, symbol) for symbol, count in counts.items())
    leaves = [(count, (symbol,)) for count, symbol in leaves]
    level = leaves
    for _ in range(MAX_BITS - 1):
        pairs = [(level[i][0] + level[i + 1][0], level[i][1] + level[i + 1][1]) for i in range(0, len(level) - 1, 2)]
        level = sorted(leaves + pairs, key=lambda item: item[0])  # stable: a symbol goes before a pair of equal weight
    lengths = dict.fromkeys(counts, 0)
    for _, symbols in level[:2 * len(leaves) - 2]:
        for symbol in symbols:
            lengths[symbol] += 1
    return lengths


def canonical(lengths):
    """{symbol: (bits as written, first bit lowest; how many)}."""
    codes, code, last = {}, 0, 0
    for length, symbol in sorted((length, symbol) for symbol, length in lengths.items()):
        if length == 0:
            return {symbol: (0, 0)}
        code <<= length - last
        codes[symbol] = (int(f"{code % (1 << length):0{length}b}"[::-1], 2), length)  # lengths of an attacker may not fit
        code, last = code + 1, length
    return codes


def write_lengths(out, lengths, symbols):
    symbol, before = 0, FIRST_LENGTH
    while symbol < symbols:
        following = min((used for used in lengths if used >= symbol), default=None)
        if following is None:
            out.write(3 | 14 << 2, 6)
            return
        unused = following - symbol
        if unused == 1:
            out.write(3, 6)
            symbol += 1
        elif unused:
            step = min(unused, 65)
            out.write(3 | 15 << 2 | (step - 2) << 6, 12)
            symbol += step
        else:
            length = lengths[symbol]
            if length == 0:
                out.write(3 | 13 << 2, 6)
            elif abs(length - before) <= 1:
                out.write({0: 0, 1: 1, -1: 2}[length - before], 2)
            else:
                out.write(3 | length << 2, 6)
            before = length or before
            symbol += 1


def read_lengths(bits, symbols):
    lengths, symbol, before = {}, 0, FIRST_LENGTH
    while symbol < symbols:
        token = bits.read(2)
        if token < 3:
            before += (0, 1, -1)[token]
        else:
            token = bits.read(4)
            if token == 14:
                break
            if token in (0, 15):
                symbol += bits.read(6) + 2 if token == 15 else 1
                continue
            before = 0 if token == 13 else token
        lengths[symbol] = before
        symbol += 1
    return lengths
