"""The C++ side: a library beside this file, loaded into PyTorch."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import torch


def load() -> None:
    """ImportError: another PyTorch, or the system lacks what the library needs."""
    libraries = {}  # by the first and the last version of PyTorch that each runs with
    for folder in pathlib.Path(__file__).parent.glob("pytorch-*-*"):
        _, first, last = folder.name.split("-")
        libraries[_number(first), _number(last)] = folder / "libdistro_train.so"
    if not libraries:
        raise ImportError(f"distro_train: there is no library beside {__file__}: build it, or install the wheel")
    ends = [".".join(map(str, end)) for end in (min(libraries)[0], max(libraries)[1])]
    runs_with = f"distro_train: is for PyTorch {ends[0]} to {ends[1]}, and this is {torch.__version__}"
    version = _number(torch.__version__)
    library = next((path for (first, last), path in libraries.items() if first <= version <= last), None)
    if library is None:
        raise ImportError(f"{runs_with}: pip install 'torch=={ends[1]}.*', or a distro-train for this one")
    try:
        torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ImportError(f"{runs_with}; its library does not load: {error.__cause__ or error}") from error


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


load()


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The module inside what torch.compile or DistributedDataParallel made of it."""
    inside: Any = model
    while isinstance(inside, torch.nn.parallel.DistributedDataParallel) or hasattr(inside, "_orig_mod"):
        inside = inside._orig_mod if hasattr(inside, "_orig_mod") else inside.module
    found: torch.nn.Module = inside
    return found


def trainable(model: torch.nn.Module) -> tuple[list[str], list[torch.nn.Parameter]]:
    """Names and parameters that are trained, tied ones once, of the unwrapped module.

    ValueError: FullyShardedDataParallel, the first FSDP."""
    sharded = sys.modules.get("torch.distributed.fsdp")
    if sharded is not None and any(isinstance(one, sharded.FullyShardedDataParallel) for one in model.modules()):
        raise ValueError(
            "model: is in FullyShardedDataParallel, whose parameters have no names: use fully_shard (FSDP2)"
        )
    inside = unwrapped(model)
    named = [(plain_name(name), value) for name, value in inside.named_parameters() if value.requires_grad]
    return [name for name, _ in named], [value for _, value in named]


def plain_name(name: str) -> str:
    """The name of a parameter without what torch.compile and checkpoint_wrapper add to it."""
    return name.replace("_orig_mod.", "").replace("_checkpoint_wrapped_module.", "")


def is_sharded(tensor: torch.Tensor) -> bool:
    """Whether it lies in parts in several processes."""
    tensors = sys.modules.get("torch.distributed.tensor")
    return tensors is not None and isinstance(tensor, tensors.DTensor)


def local_of(tensor: torch.Tensor) -> torch.Tensor:
    """Of a tensor in parts the part of this process."""
    found: torch.Tensor = tensor.to_local() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]
    return found


def new_session(
    names: list[str],
    parameters: list[torch.nn.Parameter],
    options: dict[str, str],
    state_interval_rounds: int,
) -> Any:
    """worker/python/session.h. ValueError: parameters that cannot be trained as they are."""
    session = torch.classes.distro_train.Session
    return session(names, list(parameters), options, state_interval_rounds)


def fingerprint_of_tokens(path: str) -> str:
    """The fingerprint of a file of tokens or text, the same as distro-worker's for --data.

    Reads the file once. ValueError: there is no such file, or it holds no tokens."""
    return str(torch.classes.distro_train.Session.fingerprint(path))
