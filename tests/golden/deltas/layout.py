"""Blocks, positions and segments, as docs/algorithm.md has them under "Layout"."""
import dataclasses
import math

SIDE = 64
POSITIONS = SIDE * SIDE


@dataclasses.dataclass
class Block:
    tensor: int
    elements: dict  # {row * 64 + column: index among all elements of the model}, ascending
    as_dct: bool  # whether it travels as its DCT; its positions are frequencies then

    @property
    def inside(self):
        """The positions inside the tensor. A frequency is never outside."""
        return range(POSITIONS) if self.as_dct else self.elements


def matrix_blocks(rows, cols, elements):
    """For each block, row-major: {position: element of the tensor}."""
    blocks = []
    for top in range(0, rows, SIDE):
        for left in range(0, cols, SIDE):
            inside = {}
            for r in range(min(SIDE, rows - top)):
                for c in range(min(SIDE, cols - left)):
                    element = (top + r) * cols + left + c
                    if element < elements:
                        inside[r * SIDE + c] = element
            blocks.append(inside)
    return blocks


class Layout:
    """Of tensors [(name, shape)] in manifest order. frequencies: names of those whose blocks travel
    as their DCT."""

    def __init__(self, tensors, segment_blocks, frequencies):
        self.blocks, self.tensors, self.elements = [], [], 0
        self.as_dct = [name in frequencies for name, _ in tensors]
        for i, (_, shape) in enumerate(tensors):
            count = math.prod(shape)
            if len(shape) == 1:
                rows, cols = -(-count // SIDE), SIDE
            else:
                rows, cols = shape[0], count // shape[0]
            for inside in matrix_blocks(rows, cols, count):
                moved = {position: self.elements + element for position, element in inside.items()}
                self.blocks.append(Block(i, moved, self.as_dct[i]))
            self.tensors.append(range(self.elements, self.elements + count))
            self.elements += count
        self.segment_of = [b // segment_blocks for b in range(len(self.blocks))]
        self.segments = self.segment_of[-1] + 1
