"""The C++ side: libdistro_train.so beside this file, loaded into PyTorch."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import torch

torch.ops.load_library(  # type: ignore[no-untyped-call]
    str(pathlib.Path(__file__).parent / "libdistro_train.so")
)


def trainable(model: torch.nn.Module) -> tuple[list[str], list[torch.nn.Parameter]]:
    """Names and parameters of what is trained, tied ones once."""
    named = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
    return [name for name, _ in named], [value for _, value in named]


def new_session(
    names: list[str],
    parameters: list[torch.nn.Parameter],
    options: dict[str, str],
    state_interval_rounds: int,
) -> Any:
    """worker/python/session.h. ValueError: parameters that cannot be trained as they are."""
    session = torch.classes.distro_train.Session
    return session(names, list(parameters), options,
                   state_interval_rounds)


def fingerprint_of_tokens(path: str) -> str:
    """The fingerprint of a file of tokens or text, as distro-worker has it of its --data.

    Reads the file once. ValueError: there is no such file, or it holds no tokens."""
    return str(torch.ops.distro_train.fingerprint(path))


def save_initial(
    model: torch.nn.Module,
    folder: str,
    *,
    outside: Iterable[str],
    config: Mapping[str, Any] | None = None,
) -> None:
    """Writes what `distroctl run create --model FOLDER` takes for a run of `"workers": "python"`.

    model.safetensors holds the parameters that require a gradient, f32. config.json holds `config`
    (such as model.config.to_dict(); shown to whoever opens the run's checkpoints, not read) and the
    names of `outside`: the matrices that are no inner layers, embedding and head. With
    inner_optimizer "muon" the others are Muon's.

    ValueError: a name that no trained parameter has, or a parameter that cannot be trained as it
    is."""
    names, parameters = trainable(model)
    listed = sorted(set(outside))
    unknown = [name for name in listed if name not in names]
    if unknown:
        raise ValueError(f"outside: no trained parameter is named {unknown[0]!r}")
    text = json.dumps({**(config or {}), "distro_outside": listed}, indent=2)
    torch.ops.distro_train.write_folder(folder, text, names, parameters)
