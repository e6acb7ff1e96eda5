"""The fingerprint of a data set, by content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ._module import content_of
from ._reader import MapDataset


def fingerprint_of_dataset(dataset: MapDataset[Any]) -> str:
    """A fingerprint for `connect` of every sample's content and their order: "LENGTH-SHA256".

    Reads all samples once. A sample is a tensor, an array of numpy, a number, a text, bytes, None, or a
    sequence or mapping of such; two of other types have other fingerprints, and the order of a mapping's keys
    does not matter. TypeError: it is of another type; names it. A data set whose samples change from one reading
    to the next, by augmentation, has no fingerprint: give the one of what it is made of."""
    total = hashlib.sha256()
    for index in range(len(dataset)):
        try:
            _add(dataset[index], total)
        except TypeError as error:
            raise TypeError(f"dataset[{index}]: {error}") from None
    return f"{len(dataset)}-{total.hexdigest()}"


def _add(value: Any, total: Any) -> None:
    if isinstance(value, torch.Tensor):
        _part(total, f"tensor {value.dtype} {list(value.shape)}", content_of(value))
    elif isinstance(value, Mapping):
        _part(total, f"mapping {len(value)}")
        for key in sorted(value, key=str):
            _add(key, total)
            _add(value[key], total)
    elif isinstance(value, str):
        _part(total, "text", value.encode())
    elif isinstance(value, bytes | bytearray):
        _part(total, "bytes", bytes(value))
    elif value is None or isinstance(value, bool | int | float):
        # That of numpy.float64 is another one in numpy 1 and 2.
        text = float.__repr__(value) if isinstance(value, float) else repr(value)
        _part(total, type(value).__name__, text.encode())
    elif isinstance(value, Sequence):
        _part(total, f"sequence {len(value)}")
        for one in value:
            _add(one, total)
    elif hasattr(value, "tobytes") and hasattr(value, "dtype"):  # of numpy, which need not be there
        _part(total, f"array {value.dtype.str} {list(value.shape)}", value.tobytes())
    else:
        raise TypeError(f"a {type(value).__name__} has no content that could be compared")


def _part(total: Any, what: str, content: bytes = b"") -> None:
    total.update(f"{what} {len(content)}:".encode())
    total.update(content)
