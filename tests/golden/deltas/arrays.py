"""Raw little-endian C-order arrays with an index.txt, as tests/testing/golden.h reads them."""
import math
import struct

FORMATS = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q",
           "u64": "Q", "f32": "f", "f64": "d"}


class Rows:
    """Lists that grow together, and offsets of those that are ragged."""

    def __init__(self, *ragged):
        self.lists = {name + "_offset": [0] for name in ragged}

    def add(self, **values):
        for name, value in values.items():
            self.lists.setdefault(name, []).append(value)

    def extend(self, **values):
        for name, value in values.items():
            self.lists.setdefault(name, []).extend(value)

    def end(self, name, count):
        offsets = self.lists[name + "_offset"]
        offsets.append(offsets[-1] + count)

    def arrays(self, **dtypes):
        assert dtypes.keys() == self.lists.keys()
        return {name: (dtypes[name], [len(values)], values) for name, values in self.lists.items()}


def files(arrays):
    """{file name: bytes} of {name: (dtype, shape, flat list)}, index.txt among them."""
    made, index = {}, []
    for name in sorted(arrays):
        dtype, shape, values = arrays[name]
        assert len(values) == math.prod(shape), name
        file = f"{name}.{dtype}.bin"
        made[file] = struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)
        index.append(" ".join([file, dtype, *map(str, shape)]))
    made["index.txt"] = "\n".join(index).encode() + b"\n"
    return made
