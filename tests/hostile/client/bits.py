"""Bit i of a byte string is bit i mod 8 of byte i/8 (docs/payload_format.md)."""


class BitWriter:
    def __init__(self):
        self._value, self._bits = 0, 0
        self._done = bytearray()

    def write(self, value, bits):
        self._value |= value << self._bits
        self._bits += bits
        whole = self._bits >> 3
        if whole:
            self._done += (self._value & ((1 << 8 * whole) - 1)).to_bytes(whole, "little")
            self._value >>= 8 * whole
            self._bits &= 7

    def bytes(self):
        """What was written, with zero bits up to a whole byte."""
        return bytes(self._done) + (bytes([self._value]) if self._bits else b"")


class BitReader:
    def __init__(self, data):
        self._value, self._left = int.from_bytes(data, "little"), 8 * len(data)

    def read(self, bits):
        if bits > self._left:
            raise ValueError("bits end early")
        value = self._value & ((1 << bits) - 1)
        self._value >>= bits
        self._left -= bits
        return value

    def align(self):
        """Skips to the next whole byte; how many bytes are left."""
        if self.read(self._left % 8):
            raise ValueError("padding is not zero")
        return self._left // 8
