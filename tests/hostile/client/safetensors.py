"""A snapshot: a safetensors file of f32 tensors (docs/checkpoints.md)."""
import json
import struct

import numpy


def read_safetensors(data):
    """{name: float32 array}."""
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = numpy.frombuffer(data[begin:end], "<f4").reshape(entry["shape"]).copy()
    return tensors


def replace_values(data, change):
    """The same file with other values: `change` gets and gives the float32 array of all of them."""
    begin = 8 + struct.unpack_from("<Q", data)[0]
    return data[:begin] + change(numpy.frombuffer(data[begin:], "<f4").copy()).astype("<f4").tobytes()
