"""The memory of a trained parameter."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch

from ._library import is_sharded


@dataclasses.dataclass(frozen=True)
class ParameterMemory:
    """Where the elements of a trained parameter lie, and in how many bytes.

    dtype, device  of the module's own tensor, which holds module_bytes
    master_bytes   of the float32 copy on the same device that the inner optimizer steps; 0: it steps
                   the module's own tensor
    host_bytes     of copies in the host's memory of what a device, another float type or several processes hold
    replica_bytes  of the run's parameters after the last round, float32 in the host's memory
    rule_bytes     of the error buffer (deltas) or the momentum (signs), float32 in the host's memory

    The inner optimizer's state and the gradients are not included."""

    dtype: torch.dtype
    device: torch.device
    module_bytes: int
    master_bytes: int
    host_bytes: int
    replica_bytes: int
    rule_bytes: int

    @classmethod
    def of(cls, parameter: torch.Tensor, held: Mapping[str, int]) -> ParameterMemory:
        """From the C++ side's sizes of a parameter, which only rank 0 has."""
        return cls(
            dtype=parameter.dtype,
            device=parameter.device,
            module_bytes=_own(parameter).nbytes,
            master_bytes=held.get("master", 0),
            host_bytes=held.get("host", 0) + (held.get("module", 0) if is_sharded(parameter) else 0),
            replica_bytes=held.get("replica", 0),
            rule_bytes=held.get("rule", 0),
        )


def _own(parameter: torch.Tensor) -> torch.Tensor:
    """What of it lies in this process."""
    if not is_sharded(parameter):
        return parameter
    local: torch.Tensor = parameter.to_local()  # type: ignore[attr-defined]
    return local
