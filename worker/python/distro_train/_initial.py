"""The initial folder of a run of a program's module."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from . import _files
from ._library import is_sharded, plain_name, trainable
from ._module import adapters_of, describe, entries
from ._ranks import Ranks


def save_initial(
    model: torch.nn.Module,
    folder: str,
    *,
    outside: Iterable[str] = (),
    config: Mapping[str, Any] | None = None,
) -> None:
    """Writes what `distroctl run create --model FOLDER` takes for a run of `"workers": "python"`.

    model.safetensors holds the parameters that require a gradient, f32. config.json holds `config`
    (None: model.config where that is a configuration of transformers; shown to whoever opens the run's
    checkpoints, not read) and the names of `outside`: the matrices that are no inner layers, embedding
    and head. With inner_optimizer "muon" the others are Muon's. distro_module.json describes the whole
    module: `connect` refuses another one, also where it differs in what is not trained. For an adapter of
    peft there is its adapter_config.json too, so that what an archiver publishes opens as an adapter.

    outside  names of more of them than the weights of torch.nn.Embedding, and of get_output_embeddings()
             where the model has it, as those of transformers: so the head's, if it is not the embedding.
             Of tied parameters any of their names

    ValueError: a name that no trained parameter has, a parameter that cannot be trained as it is, or
    several adapters."""
    names, parameters = trainable(model)
    for name, value in entries(model).items():
        if is_sharded(value):
            raise ValueError(
                f"parameter {name!r}: lies in parts in several processes: call save_initial before fully_shard"
            )
    if list(adapters_of(model)) not in ([], ["default"]):
        raise ValueError(f"model: has the adapters {', '.join(adapters_of(model))}; a run has one, named 'default'")
    if config is None:
        known: Any = getattr(model, "config", None)
        config = known.to_dict() if hasattr(known, "to_dict") else {}
    listed = [*_trained(model, names, parameters, outside), *_ends(model, names, parameters)]
    text = json.dumps({**(config or {}), "distro_outside": sorted(set(listed))}, indent=2)
    torch.classes.distro_train.Session.write_folder(folder, text, names, parameters)
    described = describe(model, Ranks(alone=True))
    for adapter in adapters_of(model).values():
        adapter.save_pretrained(folder)  # adapter_config.json
    with _files.written_atomically(pathlib.Path(folder, "distro_module.json")) as file:
        file.write(json.dumps(described, indent=1).encode())


def _trained(
    model: torch.nn.Module, names: list[str], parameters: list[torch.nn.Parameter], wanted: Iterable[str]
) -> list[str]:
    """The names under which the run has the parameters with the wanted names. ValueError: one is not trained."""
    by_identity = {id(value): name for name, value in zip(names, parameters)}
    every = {plain_name(name): value for name, value in model.named_parameters(remove_duplicate=False)}
    found = []
    for name in wanted:
        value = every.get(name)
        if name not in names and id(value) not in by_identity:
            raise ValueError(f"outside: no trained parameter is named {name!r}")
        found.append(name if name in names else by_identity[id(value)])
    return found


def _ends(model: torch.nn.Module, names: list[str], parameters: list[torch.nn.Parameter]) -> list[str]:
    """The names of the trained parameters of embedding and head."""
    ends = {id(one.weight) for one in model.modules() if isinstance(one, torch.nn.Embedding)}
    find_head: Any = getattr(model, "get_output_embeddings", None)
    head = None if find_head is None else find_head()
    ends.add(id(getattr(head, "weight", None)))
    return [name for name, value in zip(names, parameters) if id(value) in ends]
