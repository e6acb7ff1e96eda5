"""What a disk may hold after a loss of power: a file system in which each name and each file knows what an fsync made durable and
what was done since, and four models of how much of the latter is kept."""
import os


class File:
    def __init__(self):
        self.durable = b""
        self.since = []  # (event, offset, bytes; None: a truncate to that offset)

    def keep(self, changes):
        data = bytearray(self.durable)
        for _, offset, written in changes:
            if written is None:
                del data[offset:]
            data.extend(bytes(max(0, offset - len(data))))
            data[offset:offset + len(written or b"")] = written or b""
        return bytes(data)

    def fsync(self, begun):
        covered = [change for change in self.since if change[0] < begun]
        self.durable, self.since = self.keep(covered), self.since[len(covered):]

    def pending(self):
        return bool(self.since)


class Folder:
    def __init__(self):
        self.names = {}  # [(event, node)] by name: the durable one, then those since; None: no such name

    def bind(self, event, name, node):
        self.names.setdefault(name, [(-1, None)]).append((event, node))

    def fsync(self, begun):
        for name, versions in self.names.items():
            covered = sum(event < begun for event, _ in versions)
            self.names[name] = versions[covered - 1:]

    def pending(self):
        return any(len(versions) > 1 for versions in self.names.values())


class Issued:
    """All is kept: a disk that does everything in order."""

    def name(self, versions):
        return versions[-1]

    def file(self, file):
        return file.keep(file.since)


class Fsynced:
    """Only what an fsync made durable: data by that of its file, a name by that of its folder."""

    def name(self, versions):
        return versions[0]

    def file(self, file):
        return file.durable


class Names:
    """All names are kept, and no data without an fsync: delayed allocation. A file may have its length, and zeros there."""

    def __init__(self, random):
        self.random = random

    def name(self, versions):
        return versions[-1]

    def file(self, file):
        length = len(file.keep(file.since)) if self.random.random() < 0.5 else 0
        return file.durable + bytes(max(0, length - len(file.durable)))


class Torn:
    """Any of what was done since the fsync, in any order: each name is one of those it had, each write is kept, lost or cut."""

    def __init__(self, random):
        self.random = random

    def name(self, versions):
        return self.random.choice(versions)

    def file(self, file):
        kept = []
        for event, offset, written in file.since:
            part = self.random.choice((0, 1, self.random.random()))
            if part:
                kept.append((event, offset, written and written[:int(len(written) * part)]))
        return file.keep(kept)


def models(random):
    return {"issued": Issued(), "fsynced": Fsynced(), "names": Names(random), "torn": Torn(random)}


class Disk:
    """Follows the events of a trace. Its folder is there from the beginning, and empty."""

    def __init__(self):
        self.root = Folder()
        self._opened = {}  # node by handle
        self._number = 0

    def apply(self, event):
        if event.call != "send":
            getattr(self, event.call)(event)
        self._number += 1

    def open(self, event):
        node = self.find(event.path)
        if node is None:
            node = File()
            self._bind(event.path, node)
        elif "O_TRUNC" in event.flags:
            node.since.append((self._number, 0, None))
        self._opened[event.handle] = node

    def mkdir(self, event):
        self._bind(event.path, Folder())

    def write(self, event):
        self._opened[event.handle].since.append((self._number, event.offset, event.data))

    def truncate(self, event):
        self._opened[event.handle].since.append((self._number, event.offset, None))

    def link(self, event):
        self._bind(event.to, self.find(event.path))

    def unlink(self, event):
        self._bind(event.path, None)

    def rename(self, event):
        self.link(event)
        self.unlink(event)

    def fsync(self, event):
        self._opened[event.handle].fsync(event.begun)

    def pending(self):
        """Whether a loss of power may lose anything."""
        return any(node.pending() for node in nodes(self.root))

    def find(self, path):
        """What has this name for a process, now."""
        node = self.root
        for name in path.split("/") if path != "." else ():
            node = node.names[name][-1][1] if node and name in node.names else None
        return node

    def write_to(self, target, model):
        """Makes a folder with what the model keeps."""
        write_folder(self.root, target, model, {})

    def _bind(self, path, node):
        folder, name = os.path.split(path)
        self.find(folder or ".").bind(self._number, name, node)


def nodes(folder):
    yield folder
    for versions in folder.names.values():
        for _, node in versions:
            if isinstance(node, Folder):
                yield from nodes(node)
            elif node:
                yield node


def write_folder(folder, target, model, written):
    target.mkdir()
    for name, versions in folder.names.items():
        node = model.name([node for _, node in versions])
        if isinstance(node, Folder):
            write_folder(node, target / name, model, written)
        elif node in written:
            os.link(written[node], target / name)
        elif node:
            written[node] = target / name
            written[node].write_bytes(model.file(node))
