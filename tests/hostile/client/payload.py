"""Payloads of one segment (docs/payload_format.md): the frame around a body, and bodies of kind 1 (records, K <= 8). A block is
a list of (position, value), ascending; in an update every value is 1 or -1."""
import math
import struct

import xxhash

from client.bits import BitWriter

HEADER = struct.Struct("<4sBBHQQIIQ")
MAGIC, VERSION = b"DSTP", 1
RECORDS, UPDATE_GAPS, VOTES = 1, 2, 3
POSITIONS = 4096
RANK_BITS = (13, 23, 34, 44, 54, 63, 72, 81)  # of K = 1..8


def checksum(data):
    return xxhash.xxh3_64_intdigest(data)


def frame(kind, k, layout, round_number, segment, blocks, body):
    """A whole payload. `layout`: the first 8 bytes of the manifest's SHA-256, as bytes."""
    data = HEADER.pack(MAGIC, VERSION, kind, k, int.from_bytes(layout[:8], "little"), round_number, segment, blocks,
                       len(body)) + body
    return seal(data)


def seal(data):
    """Bytes with their checksum: of a payload's header and body."""
    return data + struct.pack("<Q", checksum(data))


def with_bytes(whole, at, data):
    """The payload with other bytes at a place before its checksum, and a checksum that holds."""
    return seal(whole[:at] + data + whole[at + len(data):-8])


def with_body(whole, body):
    """The payload with another body, its length and a checksum that holds."""
    return seal(HEADER.pack(*HEADER.unpack_from(whole)[:-1], len(body)) + body)


def rank(positions):
    return sum(math.comb(position, i + 1) for i, position in enumerate(positions))


def encode_records(blocks, k):
    """The body of kind 1."""
    out = BitWriter()
    for block in blocks:
        if not block:
            out.write(math.comb(POSITIONS, k), RANK_BITS[k - 1])
            out.write(0, k)
            continue
        out.write(rank([position for position, _ in block]), RANK_BITS[k - 1])
        out.write(sum((value < 0) << i for i, (_, value) in enumerate(block)), k)
    return out.bytes()


def unframe(data):
    """(kind, body) of a payload whose checksum holds; ValueError otherwise."""
    if len(data) < HEADER.size + 8 or checksum(data[:-8]) != struct.unpack("<Q", data[-8:])[0]:
        raise ValueError("the checksum of a payload is wrong")
    magic, version, kind, *_, length = HEADER.unpack_from(data)
    body = data[HEADER.size:-8]
    if magic != MAGIC or version != VERSION or length != len(body):
        raise ValueError("the header of a payload is wrong")
    return kind, body
