"""Parameters that follow the log (docs/algorithm.md): layout, integer inverse transform, update, state hash."""
import math
import struct

import numpy
import xxhash

from client.gaps import decode_gaps
from client.payload import unframe
from client.safetensors import read_safetensors

SIDE, G = 64, 0x9E3779B97F4A7C15
MAX_SUM = 32767


def _basis():
    """Q[frequency][sample] = round(2^13 * D), D the orthonormal DCT-II."""
    rows = [[math.sqrt((1 if k == 0 else 2) / SIDE) * math.cos(math.pi * (2 * n + 1) * k / (2 * SIDE))
             for n in range(SIDE)] for k in range(SIDE)]
    return numpy.rint(numpy.array(rows) * 8192).astype(numpy.int64)


BASIS = _basis()


def tensor_hash(values):
    with numpy.errstate(over="ignore"):
        bits = values.reshape(-1).astype("<f4").view("<u4").astype(numpy.uint64)
        z = (numpy.arange(bits.size, dtype=numpy.uint64) << numpy.uint64(32)) + bits + numpy.uint64(G)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return int((z ^ (z >> numpy.uint64(31))).sum(dtype=numpy.uint64))


def combined_hash(hashes):
    return xxhash.xxh3_64_intdigest(struct.pack(f"<{len(hashes)}Q", *hashes))


class Tensor:
    def __init__(self, values):
        self.values = values
        self.flat = values.ndim < 2  # of one dimension: rows of 64, no decay
        columns = SIDE if self.flat else values.size // values.shape[0]
        self.shape = (math.ceil(values.size / SIDE) if self.flat else values.shape[0], columns)
        self.across = math.ceil(columns / SIDE)
        self.blocks = self.across * math.ceil(self.shape[0] / SIDE)

    def apply(self, votes, eta, eta_lambda):
        rows = math.ceil(self.shape[0] / SIDE) * SIDE
        direction = numpy.zeros((rows, self.across * SIDE), numpy.float32)
        for number, block in enumerate(votes):
            if block:
                top, left = (SIDE * part for part in divmod(number, self.across))
                direction[top:top + SIDE, left:left + SIDE] = _direction(block)
        d = direction[:self.shape[0], :self.shape[1]].reshape(-1)[:self.values.size].reshape(self.values.shape)
        p = self.values
        if not self.flat:
            p = p - p * eta_lambda
        self.values = p - eta * d


def _direction(block):
    v = numpy.zeros((SIDE, SIDE), numpy.int64)
    for position, value in block:
        v[position // SIDE, position % SIDE] = value
    v <<= (MAX_SUM // int(numpy.abs(v).sum())).bit_length() - 1
    t = (v @ BASIS + 32) >> 6
    return numpy.sign(BASIS.T @ t).astype(numpy.float32)


class Replica:
    def __init__(self, snapshot, segment_blocks):
        tensors = read_safetensors(snapshot)
        self.tensors = [Tensor(tensors[name]) for name in sorted(tensors, key=str.encode)]
        blocks = sum(tensor.blocks for tensor in self.tensors)
        self.segments = [min(segment_blocks, blocks - first) for first in range(0, blocks, segment_blocks)]

    def tensor_hashes(self):
        return [tensor_hash(tensor.values) for tensor in self.tensors]

    def state_hash(self):
        return combined_hash(self.tensor_hashes())

    def apply(self, payloads, step):
        """A round's result: the payload of each segment, and its StepParameters."""
        votes = []
        for blocks, payload in zip(self.segments, payloads, strict=True):
            votes += decode_gaps(unframe(payload)[1], blocks)
        eta, eta_lambda = (numpy.frombuffer(struct.pack("<I", bits), "<f4")[0] for bits in (step.eta_bits, step.eta_lambda_bits))
        at = 0
        for tensor in self.tensors:
            tensor.apply(votes[at:at + tensor.blocks], eta, eta_lambda)
            at += tensor.blocks
