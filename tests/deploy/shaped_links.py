"""Links of a chosen speed, each in a network namespace of its own, without a trace on the machine: namespaces have no names
and end with their last process.

    with Hub() as hub:                           # this thread and what it starts are in a namespace of their own
        link = hub.link(up=200e3, down=2e6)      # bits a second
        subprocess.Popen([*link.prefix, ...])    # reaches the hub at link.address, and as all links do at HUB
        link.shape(up=20e3)
"""
import ctypes
import os
import subprocess
import time

CLONE_NEWNET = 0x40000000
HUB = "10.78.0.1"
BURST_BYTES = 2000  # above one packet, and little beside an upload ...
BURST_SECONDS = 0.008  # ... or what a fast link takes in this time: packet by packet, many of them take more than a machine has


class Refused(Exception):
    """The system does not let us make namespaces or shape links."""


def run(*command):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    except OSError as error:
        raise Refused(str(error)) from error
    if done.returncode:
        raise Refused(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def namespace_of(process):
    return os.readlink(f"/proc/{process}/ns/net")


class Link:
    def __init__(self, number, up, down, queue):
        self.up, self.down, self.queue = up, down, queue
        self.address = f"10.77.{number}.1"
        self._hub_end, self._far_end = f"hub{number}", f"far{number}"
        try:
            self._holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "read forever"], stdin=subprocess.PIPE)
        except OSError as error:
            raise Refused(str(error)) from error
        try:
            self._connect(number)
            self.shape(up, down)
        except OSError as error:  # it ended already
            self.close()
            raise Refused(f"unshare --net: {error}") from error
        except BaseException:
            self.close()
            raise

    def _connect(self, number):
        self.prefix = ("nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "--")
        end = time.monotonic() + 20
        while namespace_of(self._holder.pid) == namespace_of("thread-self"):
            if self._holder.poll() is not None or time.monotonic() > end:
                raise Refused("unshare --net made no namespace")
            time.sleep(0.01)
        run("ip", "link", "add", self._hub_end, "type", "veth", "peer", "name", self._far_end, "netns", self._holder.pid)
        run("ip", "address", "add", f"{self.address}/24", "dev", self._hub_end)
        run("ip", "link", "set", self._hub_end, "up")
        run(*self.prefix, "ip", "address", "add", f"10.77.{number}.2/24", "dev", self._far_end)
        run(*self.prefix, "ip", "link", "set", "lo", "up")
        run(*self.prefix, "ip", "link", "set", self._far_end, "up")
        run(*self.prefix, "ip", "route", "add", HUB, "via", self.address)

    def shape(self, up=None, down=None):
        """Bits a second; what is left out stays as it is."""
        self.up, self.down = up or self.up, down or self.down
        for prefix, device, rate in ((self.prefix, self._far_end, self.up), ((), self._hub_end, self.down)):
            run(*prefix, "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{round(rate)}bit",
                "burst", round(max(BURST_BYTES, rate / 8 * BURST_SECONDS)), "latency", self.queue)

    def close(self):
        self._holder.stdin.close()
        self._holder.wait()


class Hub:
    def __enter__(self):
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self._links = []
        if self._libc.unshare(CLONE_NEWNET):
            os.close(self._before)
            raise Refused(f"unshare: {os.strerror(ctypes.get_errno())}")
        try:
            run("ip", "link", "set", "lo", "up")
            run("ip", "address", "add", f"{HUB}/32", "dev", "lo")
        except BaseException:
            self.__exit__()
            raise
        return self

    def link(self, up, down, queue="500ms"):
        """`queue`: how long a packet may wait before it is dropped instead."""
        self._links.append(Link(len(self._links) + 1, up, down, queue))
        return self._links[-1]

    def __exit__(self, *_):
        for link in self._links:
            link.close()
        self._libc.setns(self._before, CLONE_NEWNET)
        os.close(self._before)
