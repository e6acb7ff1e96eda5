"""Reads the headers of an aggregator's round records (docs/files.md), without the aggregator's own code, and
checks each new one against the invariants of every log, regardless of faults of the processes."""
import collections
import struct

FOOTER = struct.Struct("<QIIQQQ8s")  # round, segments, header bytes, checksums of table, header and all that, magic
ENTRY = struct.Struct("<QQQ")  # of the table: offset, bytes, checksum
PACK = 4  # kind of a record that holds the headers of pruned rounds


def fields(message):
    """(number, value) of a protobuf message: int of a varint or fixed number, bytes of the rest."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 2: None, 5: 4}[kind] or varint()
            value = message[at:at + size]
            at += size
            if kind != 2:
                value = int.from_bytes(value, "little")
        found.append((key >> 3, value))
    return found


def one(message, number, default=0):
    return next((value for key, value in message if key == number), default)


def many(message, number):
    return [value for key, value in message if key == number]


def indices(ranges):
    """Of the samples of SampleRange messages, in their order."""
    pairs = [(one(each, 1), one(each, 2)) for each in map(fields, ranges)]
    return [first + i for first, count in pairs for i in range(count)]


def slots_by_worker(slots):
    """Sample indices by worker, of Slot messages."""
    found = {}
    for slot in map(fields, slots):
        first = one(slot, 2)
        found[one(slot, 1).decode()] = [*range(first, first + one(slot, 3)), *indices(many(slot, 4))]
    return found


def read_headers(path):
    """[(round, chain hash, fields of the header)] of a record: of one round, or of a pack."""
    data = path.read_bytes()
    number, segments, header_bytes, _, chain_hash, _, magic = FOOTER.unpack(data[-FOOTER.size:])
    if magic != b"DSTROEND":
        raise AssertionError(f"{path}: is no whole record")
    end = len(data) - FOOTER.size
    if data[12] != PACK:
        return [(number, chain_hash, fields(data[end - header_bytes:end]))]
    entries = ENTRY.iter_unpack(data[end - segments * ENTRY.size:end])
    return [(number + i, entry_hash, fields(data[at:at + size])) for i, (at, size, entry_hash) in enumerate(entries)]


class Record:
    def __init__(self, number, chain_hash, header):
        self.round, self.hash = number, chain_hash
        self.epoch, self.steps = one(header, 2), many(header, 3)
        self.members = [fields(member) for member in many(header, 4)]
        self.included = [one(fields(segment), 1, b"") for segment in many(header, 5)]
        self.slots = slots_by_worker(many(header, 6))
        self.unread = indices(many(header, 14))
        self.next_sample, self.predecessor = one(header, 7), one(header, 8)

    def state_hashes(self):
        """By worker, for those that stated one."""
        return {one(member, 1).decode(): one(member, 6) for member in self.members if many(member, 6)}

    def deltas(self):
        """Samples that no worker read are assigned again."""
        return any(many(fields(step), 6) for step in self.steps)

    def given(self):
        """Sample indices by worker that had none when the round opened."""
        return {one(member, 1).decode(): indices(many(member, 10)) for member in self.members if many(member, 10)}

    def readers(self):
        """Names of the members that are included in a segment: their updates are of all samples of their slots."""
        assert not any(one(member, 9) for member in self.members), "the run has a window: a part of a slot may be read"
        return {one(member, 1).decode() for i, member in enumerate(self.members)
                if any(i // 8 < len(bits) and bits[i // 8] >> i % 8 & 1 for bits in self.included)}

    def whole_updates(self):
        """(name, incarnation) of the members that are included in every segment."""
        return [(one(member, 1).decode(), one(member, 2)) for i, member in enumerate(self.members)
                if self.included and all(i // 8 < len(bits) and bits[i // 8] >> i % 8 & 1 for bits in self.included)]


class Samples:
    """Every sample is read once, or is still to be read: a record assigns and lists as unread exactly the samples that
    no worker had, and those that were returned."""

    def __init__(self, start):
        header = read_headers(start)[0][2]
        self._slots, self._next_slots = slots_by_worker(many(header, 5)), slots_by_worker(many(header, 6))
        self._unread, self._next_sample = [], one(header, 7)

    def add(self, record, what):
        assert record.next_sample >= self._next_sample, f"{what} gives samples away again"
        given = record.given()
        assert not set(given) & set(self._slots), f"{what}: a worker that has samples is given some"
        slots, readers = {**self._slots, **given}, record.readers()
        assert readers <= set(slots), f"{what}: an update of no samples"
        free = [*self._unread, *range(self._next_sample, record.next_sample)]
        back = [index for name, slot in slots.items() if record.deltas() and name not in readers for index in slot]
        out = [index for slot in (*record.slots.values(), *given.values()) for index in slot]
        assert sorted(free + back) == sorted(out + record.unread), f"{what}: a sample is given twice, or lost"
        self._slots, self._next_slots = self._next_slots, record.slots
        self._unread, self._next_sample = record.unread, record.next_sample


class LogChecker:
    """Follows rounds/ of a data folder. Keeps a few numbers of each round."""

    def __init__(self, data_dir):
        self.rounds_dir = data_dir / "rounds"
        self.hashes = []  # chain hash by round
        self.included = collections.Counter()  # rounds in which a process was included whole
        self.members = 0
        self._epoch = 0
        self._samples = None  # until there is a record

    def _headers(self, number):
        """Those of the file that has the round; none if it is not committed yet."""
        name = f"{number:010}.record"
        for path in sorted((path for path in self.rounds_dir.glob("0*.record") if path.name <= name), reverse=True):
            try:
                headers = read_headers(path)
            except FileNotFoundError:  # packed this moment
                return self._headers(number)
            if headers[-1][0] >= number:
                return headers
            if len(headers) > 1 or path.name < f"{max(0, number - 1024):010}":
                break
        return []

    def follow(self):
        """Reads the records that are new."""
        while new := [header for header in self._headers(len(self.hashes)) if header[0] >= len(self.hashes)]:
            for header in new:
                self._check(Record(*header))
        return len(self.hashes)

    def _check(self, record):
        number = len(self.hashes)
        what = f"record {number}"
        assert record.round == number, f"{what} says it is {record.round}"
        if self.hashes:
            assert record.predecessor == self.hashes[-1], f"{what} does not continue record {number - 1}"
        assert record.epoch >= self._epoch, f"{what} is of epoch {record.epoch}, the one before of {self._epoch}"
        states = record.state_hashes()
        assert len(set(states.values())) <= 1, f"{what}: replicas differ: {states}"
        self._samples = self._samples or Samples(self.rounds_dir / "start.record")
        self._samples.add(record, what)
        self.hashes.append(record.hash)
        self.included.update(record.whole_updates())
        self.members += len(states)
        self._epoch = record.epoch

    def check_nothing_changed(self):
        """Reads all headers again: rounds that were there once are there still, and are the same."""
        seen = 0
        while seen < len(self.hashes):
            headers = self._headers(seen)
            assert headers, f"record {seen} is gone"
            for number, chain_hash, _ in headers:
                assert chain_hash == self.hashes[number], f"record {number} is another one than it was"
            seen = headers[-1][0] + 1
