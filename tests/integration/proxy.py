"""A TCP proxy that breaks connections where a test says: in the middle of an HTTP/2 DATA frame of a named rpc, in either
direction. Loopback only, on a port that the system picks; its own thread with an event loop.

    proxy = Proxy(aggregator.grpc)
    fault = proxy.arm("reset", "UploadUpdate", "up")
    ... a client of proxy.address ...
    fault.happened  # becomes True when half of a frame was let through and the connection was reset

Kinds of faults:
    cut         both sides get an orderly end
    reset       both sides get a reset
    half_close  the receiver of the frame gets an end; the other direction goes on, and nothing more is read from the sender
    stall       nothing is let through any more in either direction, and nobody is told, until `release`
"""
import asyncio
import re
import socket
import struct
import threading

PREFACE_BYTES = 24  # "PRI * HTTP/2.0...", what a client sends first
DATA, FRAME_HEADER_BYTES = 0, 9
KINDS = ("cut", "reset", "half_close", "stall")
METHOD = re.compile(rb"/distro\.v1\.AggregatorService/([A-Za-z]+)")


class Frames:
    """Follows the frames of one direction through chunks of any size."""

    def __init__(self, skip):
        self._skip = skip  # bytes of the preface, or of a payload
        self._header = b""

    def data_frames(self, chunk):
        """(offset in the chunk of the payload's begin, payload bytes) of each DATA frame whose payload begins in it."""
        found, at = [], 0
        while at < len(chunk):
            step = min(self._skip, len(chunk) - at)
            self._skip -= step
            at += step
            if self._skip or at == len(chunk):
                break
            taken = chunk[at:at + FRAME_HEADER_BYTES - len(self._header)]
            self._header += taken
            at += len(taken)
            if len(self._header) == FRAME_HEADER_BYTES:
                size, kind = int.from_bytes(self._header[:3], "big"), self._header[3]
                self._header, self._skip = b"", size
                if kind == DATA and size > 1:
                    found.append((at, size))
        return found


class Fault:
    """An armed fault; `happened` once it met its frame."""

    def __init__(self, kind, method, direction, frame):
        assert kind in KINDS and direction in ("up", "down")
        self.kind, self.method, self.direction = kind, method, direction
        self.frames_left = frame
        self.happened = False


class Connection:
    """A client's connection and the one to the target that belongs to it."""

    def __init__(self, proxy, client, server):
        self.proxy = proxy
        self.ends = {"up": (client[0], server[1]), "down": (server[0], client[1])}  # (reads from, writes to)
        self.frames = {"up": Frames(PREFACE_BYTES), "down": Frames(0)}
        self.method = ""  # the last one that was named; calls of it that follow are not named again
        self.going = asyncio.Event()
        self.going.set()

    async def run(self):
        pumps = [asyncio.create_task(self.pump(direction)) for direction in self.ends]
        try:
            await asyncio.gather(*pumps)
        except (OSError, asyncio.IncompleteReadError):
            self.reset()
        finally:
            for task in pumps:
                task.cancel()
            for _, writer in self.ends.values():
                writer.close()

    async def pump(self, direction):
        reader, writer = self.ends[direction]
        while chunk := await reader.read(1 << 14):
            await self.proxy.hold_back(len(chunk))
            await self.going.wait()
            if direction == "up":
                self.note_method(chunk)
                if self.proxy.flip and len(chunk) > 1 << 12:
                    chunk = chunk[:2048] + bytes([chunk[2048] ^ 1]) + chunk[2049:]
            met = self.meet(direction, chunk)
            if met:
                fault, offset = met
                writer.write(chunk[:offset])
                if not await self.act(fault, direction, writer):
                    return
                chunk = chunk[offset:]
            writer.write(chunk)
            await writer.drain()
        if not writer.is_closing():
            writer.write_eof()

    def note_method(self, chunk):
        names = METHOD.findall(chunk)
        if names:
            self.method = names[-1].decode()

    def meet(self, direction, chunk):
        """The armed fault that a frame of this chunk meets, and where in the chunk the frame's middle is."""
        for at, size in self.frames[direction].data_frames(chunk):
            for fault in self.proxy.armed(self.method, direction):
                if fault.frames_left == 0:
                    fault.happened = True
                    return fault, min(at + (size + 1) // 2, len(chunk))
                fault.frames_left -= 1
        return None

    async def act(self, fault, direction, writer):
        """Whether the pump continues."""
        await writer.drain()
        if fault.kind == "stall":
            self.going.clear()
            await self.going.wait()
            return True
        if fault.kind == "half_close":
            writer.write_eof()
        elif fault.kind == "reset":
            self.reset()
        else:
            self.close()
        return False

    def close(self):
        for _, writer in self.ends.values():
            if not writer.is_closing():
                writer.close()

    def reset(self):
        for _, writer in self.ends.values():
            sock = writer.get_extra_info("socket")
            if sock is not None and sock.fileno() >= 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class Proxy:
    """See the top of the file. Attributes may be set at any time:
    target            "host:port" of connections that begin from now on
    delay             seconds that each chunk (16 KiB at most) waits
    bytes_per_second  of each connection; 0: no limit
    refuse            connections that begin from now on are reset at once
    flip              one bit of each large chunk (above 4 KiB) that goes up is changed
    """

    def __init__(self, target=None):
        self.target, self.delay, self.bytes_per_second, self.refuse = target, 0.0, 0, False
        self.flip = False
        self._faults, self._connections = [], set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._server.sockets[0].getsockname()[1]

    def arm(self, kind, method, direction, frame=0):
        """A fault that the DATA frame after `frame` others of that rpc and direction will meet."""
        fault = Fault(kind, method, direction, frame)
        self._faults.append(fault)
        return fault

    def armed(self, method, direction):
        return [fault for fault in self._faults
                if not fault.happened and (fault.method, fault.direction) == (method, direction)]

    def break_all(self, kind):
        """Applies it to every open connection."""
        async def act():
            for connection in list(self._connections):
                if kind == "stall":
                    connection.going.clear()
                elif kind == "reset":
                    connection.reset()
                else:
                    connection.close()
            return len(self._connections)
        return self._call(act())

    def release(self):
        """Resumes stalled connections."""
        async def act():
            for connection in self._connections:
                connection.going.set()
        self._call(act())

    def heal(self):
        """Disarms all faults and resumes stalled connections."""
        self._faults, self.delay, self.bytes_per_second, self.refuse = [], 0.0, 0, False
        self.release()

    def close(self):
        async def act():
            self._server.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._call(act())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def hold_back(self, size):
        seconds = self.delay + (size / self.bytes_per_second if self.bytes_per_second else 0)
        if seconds:
            await asyncio.sleep(seconds)

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(20)

    async def _serve(self, reader, writer):
        try:
            host, port = self.target.rsplit(":", 1)
            server = None if self.refuse else await asyncio.open_connection(host, int(port))
        except OSError:
            server = None
        if server is None:
            writer.transport.abort()
            return
        connection = Connection(self, (reader, writer), server)
        self._connections.add(connection)
        try:
            await connection.run()
        except asyncio.CancelledError:
            connection.reset()
        finally:
            self._connections.discard(connection)
