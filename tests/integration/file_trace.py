"""The calls of a process on the files below a folder, and what it sends, in order: read from strace."""
import collections
import os
import re
from typing import NamedTuple

from processes import until

# Calls that would change a file in a way that disks.py does not know are traced too: `read` refuses them.
CALLS = ("open,openat,creat,close,write,writev,pwrite64,pwritev,ftruncate,truncate,fallocate,copy_file_range,sendfile,mkdir,mkdirat,rename,"
         "renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,fsync,fdatasync,sendmsg,sendto")
LINE = re.compile(r"(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)")
ENDED = re.compile(r"(.*)\) += (-?\d+)")
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class Event(NamedTuple):
    """A call that succeeded; paths are relative to the folder. `begun` events were over when it began."""
    call: str  # open, mkdir, write, truncate, link, unlink, rename, fsync, send
    begun: int
    path: str = ""
    to: str = ""
    handle: int = 0  # of an open file: never used twice, unlike a descriptor
    offset: int = 0  # of a write; the length that a truncate leaves
    data: bytes = b""
    flags: str = ""


def tracer(path):
    """In front of a command, whose process keeps its id: strace is its grandchild."""
    return ("strace", "-D", "-f", "--seccomp-bpf", "-q", "-v", "-xx", "-s", str(1 << 24), "-o", path, "-e", f"trace={CALLS}", "--")


def await_end(path, pid):
    """Of the trace of a process that has ended."""
    until(lambda: re.search(rb"^%d +\+\+\+ " % pid, path.read_bytes(), re.MULTILINE), f"{path} ends")


class Trace:
    """The events of processes that ran one after the other."""

    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        self.events = []
        self._handles = 0
        self._open = {}  # (handle, path) by descriptor
        self._ends = collections.Counter()  # of what a handle wrote without an offset

    def read(self, path):
        self._open, begun = {}, {}
        with open(path, encoding="ascii") as lines:
            for line in lines:
                match = LINE.match(line)
                if not match:
                    continue  # a signal, or an end
                thread, resumed, call, rest = match.groups()
                if call == "close":  # when it begins: another thread may get the descriptor before it is over
                    self._open.pop(int(rest.partition(")")[0].split()[0]), None)
                elif resumed == "close":
                    pass
                elif call in ("sendmsg", "sendto"):
                    self._add("send", len(self.events), data=b"".join(texts(rest)))
                elif rest.endswith("<unfinished ...>"):
                    begun[thread] = len(self.events), rest.removesuffix("<unfinished ...>")
                else:
                    since, before = begun.pop(thread, (len(self.events), "")) if resumed else (len(self.events), "")
                    ended = ENDED.match(before + rest)
                    if ended and int(ended[2]) >= 0:
                        self._ended(resumed or call, since, ended[1], int(ended[2]))
        return self

    def _add(self, call, begun, **fields):
        self.events.append(Event(call, begun, **fields))

    def _ended(self, call, begun, arguments, result):
        strings = texts(arguments)
        descriptor = int(arguments.split(",")[0]) if arguments[:1].isdigit() else -1
        if call in ("open", "openat", "creat"):
            self._opened(begun, self._path(arguments, strings[0]), arguments, result)
        elif call in ("rename", "renameat", "renameat2", "link", "linkat"):
            self._two_names(call.removesuffix("2").removesuffix("at"), begun, *strings)
        elif call in ("mkdir", "mkdirat", "unlink", "unlinkat", "rmdir"):
            path = self._path(arguments, strings[0])
            if path is not None:
                self._add("mkdir" if call.startswith("mkdir") else "unlink", begun, path=path)
        elif descriptor in self._open:
            self._on_open_file(call, begun, self._open[descriptor], arguments, strings, result)

    def _path(self, arguments, path):
        """Relative to the folder; None outside it."""
        if not path.startswith(b"/") and arguments[:1].isdigit():
            opened = self._open.get(int(arguments.split(",")[0]))
            path = os.path.join(self.folder, opened[1], path.decode()).encode() if opened else path
        path = os.path.normpath(path.decode())
        return os.path.relpath(path, self.folder) if f"{path}/".startswith(f"{self.folder}/") else None

    def _opened(self, begun, path, flags, descriptor):
        self._open.pop(descriptor, None)
        if path is None:
            return
        self._handles += 1
        self._open[descriptor] = self._handles, path
        self._add("open", begun, path=path, handle=self._handles, flags=flags.rsplit('"', 1)[1])

    def _two_names(self, call, begun, old, new):
        old, new = (self._path("", name) for name in (old, new))
        if (old is None) != (new is None):
            raise ValueError(f"{call} {old} {new}: out of the folder or into it")
        if old is not None:
            self._add(call, begun, path=old, to=new)

    def _on_open_file(self, call, begun, opened, arguments, strings, result):
        handle, path = opened
        if call == "write":  # nobody reads or seeks in such a file meanwhile
            self._add("write", begun, path=path, handle=handle, offset=self._ends[handle], data=strings[0][:result])
            self._ends[handle] += result
        elif call == "pwrite64":
            self._add("write", begun, path=path, handle=handle, offset=int(arguments.rsplit(",", 1)[1]), data=strings[0][:result])
        elif call == "ftruncate":
            self._add("truncate", begun, path=path, handle=handle, offset=int(arguments.rsplit(",", 1)[1]))
        elif call in ("fsync", "fdatasync"):
            self._add("fsync", begun, path=path, handle=handle)
        else:
            raise ValueError(f"{call} of {path}: is not modelled")


def texts(arguments):
    return [bytes.fromhex(found.replace("\\x", "")) for found in TEXT.findall(arguments)]
