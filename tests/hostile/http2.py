"""HTTP/2 over TLS without a library: frames that a gRPC library would not send, from a chosen source address. Blocking sockets;
one Connection belongs to one thread."""
import select
import socket
import ssl
import struct
import time

import hpack

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_BYTES = 16384  # the largest frame that every peer takes
CANCEL = struct.pack(">I", 8)


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def integer(value, prefix_bits):
    """An HPACK integer whose first byte has no other bits set."""
    limit = (1 << prefix_bits) - 1
    if value < limit:
        return bytes((value,))
    out, value = bytearray((limit,)), value - limit
    while value >= 128:
        out.append(128 | value & 127)
        value >>= 7
    out.append(value)
    return bytes(out)


def literal(name, value):
    """A header field that enters no table."""
    return b"\0" + integer(len(name), 7) + name + integer(len(value), 7) + value


def block(fields):
    return b"".join(literal(name.encode(), value if isinstance(value, bytes) else value.encode()) for name, value in fields)


def grpc_fields(path, token=None, extra=()):
    fields = [(":method", "POST"), (":scheme", "https"), (":path", path), (":authority", "127.0.0.1"), ("te", "trailers"),
              ("content-type", "application/grpc"), *extra]
    return fields + ([("authorization", f"Bearer {token}")] if token else [])


def message(data, compressed=False):
    """A length-prefixed message of gRPC."""
    return struct.pack(">BI", compressed, len(data)) + data


def open_socket(address, source=None, seconds=10):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), seconds, (source, 0) if source else None)


class Closed(OSError):
    """The peer has ended the connection."""


class Connection:
    def __init__(self, address, ca, source=None, seconds=10):
        context = ssl.create_default_context(cafile=ca)
        context.set_alpn_protocols(["h2"])
        plain = open_socket(address, source, seconds)
        try:
            self.socket = context.wrap_socket(plain, server_hostname="127.0.0.1")
        except OSError:
            plain.close()
            raise
        self._read = b""
        self._window, self._initial, self._streams = 65535, 65535, {}
        self._decoder = hpack.Decoder()
        self._next_stream = 1
        self.closed, self.resets, self.frames = False, 0, 0
        self.answers = {}  # stream: header fields so far
        self.send(PREFACE + frame(SETTINGS, 0, 0))

    def close(self):
        self.closed = True
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            self.closed = True
            raise Closed(str(error)) from error

    def open_stream(self, fields, end=False):
        stream = self._next_stream
        self._next_stream += 2
        self._streams[stream] = self._initial
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block(fields)))
        return stream

    def write(self, stream, data, end=True, seconds=10):
        """DATA within the windows that the peer gives; False when it gives none in time or has ended the stream."""
        limit, at = time.monotonic() + seconds, 0
        while at < len(data):
            room = min(self._window, self._streams.get(stream, 0), FRAME_BYTES, len(data) - at)
            if room <= 0:
                if stream not in self._streams or time.monotonic() > limit:
                    return False
                self.read(0.05)
                continue
            last = end and at + room == len(data)
            self.send(frame(DATA, END_STREAM if last else 0, stream, data[at:at + room]))
            at += room
            self._window -= room
            self._streams[stream] -= room
            self.read(0)
        return True

    def read(self, seconds):
        """Takes what has come, waiting at most so long for the first byte; raises Closed at the end."""
        if self.closed:
            raise Closed("closed")
        if not self.socket.pending() and not select.select([self.socket], [], [], seconds)[0]:
            return
        self.socket.settimeout(0.0)
        try:
            while True:
                chunk = self.socket.recv(1 << 16)
                if not chunk:
                    raise Closed("closed by the peer")
                self._read += chunk
        except (ssl.SSLWantReadError, BlockingIOError):
            pass
        except OSError as error:
            self.closed = True
            raise Closed(str(error)) from error
        finally:
            if not self.closed:
                self.socket.settimeout(10)
        self._take_frames()

    def _take_frames(self):
        while len(self._read) >= 9:
            size = int.from_bytes(self._read[:3], "big")
            if len(self._read) < 9 + size:
                return
            kind, flags, stream = self._read[3], self._read[4], int.from_bytes(self._read[5:9], "big") & 0x7FFFFFFF
            payload, self._read = self._read[9:9 + size], self._read[9 + size:]
            self.frames += 1
            self._take(kind, flags, stream, payload)

    def _take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload) - 5, 6):
                key, value = struct.unpack_from(">HI", payload, at)
                if key == 4:
                    for open_one in self._streams:
                        self._streams[open_one] += value - self._initial
                    self._initial = value
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            step = int.from_bytes(payload, "big")
            if stream == 0:
                self._window += step
            elif stream in self._streams:
                self._streams[stream] += step
        elif kind == RST_STREAM:
            self.resets += 1
            self._end(stream)
        elif kind == GOAWAY:
            self.goaway = payload
        elif kind == HEADERS:
            self.answers.setdefault(stream, []).extend(self._decoder.decode(payload))
            if flags & END_STREAM:
                self._end(stream)
        elif kind == DATA and flags & END_STREAM:
            self._end(stream)

    def _end(self, stream):
        self._streams.pop(stream, None)
        self.answers.setdefault(stream, [])

    def open_streams(self):
        return len(self._streams)

    def grpc_status(self, stream, seconds=10):
        """The status of a call when it has ended; None when it has not in time, or ended without."""
        limit = time.monotonic() + seconds
        while stream in self._streams and time.monotonic() < limit:
            self.read(0.05)
        return next((int(value) for name, value in self.answers.get(stream, ()) if name in ("grpc-status", b"grpc-status")), None)
