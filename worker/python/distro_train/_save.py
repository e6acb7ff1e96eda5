"""Writes a module as a folder that opens as the module was made."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import torch

from . import _files
from ._library import unwrapped


def save(model: torch.nn.Module, whole: dict[str, torch.Tensor], session: Any, folder: str) -> None:
    """Writes the run's parameters after the last applied round, f32, whatever the module's own have become since: a
    model of transformers or peft by its own save_pretrained; any other as its whole state dict in model.safetensors,
    beside the run's config.json. Adds the run's companions. OSError: it cannot be written.

    whole  the state dict of the whole module (`entries`)"""
    parameters: dict[str, torch.Tensor] = session.parameters()
    state = _state(whole, parameters)
    saves: Any = getattr(unwrapped(model), "save_pretrained", None)
    if saves is None and state.keys() == parameters.keys():
        return _raise_if_failed(session.save(folder))
    with _whole(pathlib.Path(folder)) as path:
        try:
            if saves is not None:
                saves(str(path), state_dict=state)
                _say_float32(path / "config.json")
            else:
                _save_plain(state, session.model_config(), path)
        except OSError:
            raise
        except Exception as error:  # of safetensors, which has its own for a full disk
            raise OSError(f"{folder}: {error}") from error
        _raise_if_failed(session.save_companions(str(path)))


def _state(whole: dict[str, torch.Tensor], parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The state dict with the run's parameters."""
    run = {id(whole[name]): value for name, value in parameters.items()}
    state: dict[str, torch.Tensor] = {}
    for name, value in whole.items():
        of_run = run.get(id(value))
        state[name] = value.detach() if of_run is None else of_run.view(value.shape)
    return state


def _save_plain(state: dict[str, torch.Tensor], config: str, path: pathlib.Path) -> None:
    from safetensors.torch import save_file

    seen: set[int] = set()
    apart = {}
    for name, value in state.items():  # tied tensors are in the file under each of their names
        own = value.cpu().contiguous()
        apart[name] = own.clone() if own.data_ptr() in seen else own
        seen.add(own.data_ptr())
    save_file(apart, str(path / "model.safetensors"), metadata={"format": "pt"})
    (path / "config.json").write_text(config)


def _say_float32(path: pathlib.Path) -> None:
    """Readers load the weights in the type that the configuration names, and they are float32."""
    if not path.exists():
        return
    config = json.loads(path.read_text())
    changed = {key: "float32" for key in ("dtype", "torch_dtype") if key in config}
    path.write_text(json.dumps({**config, **changed}, indent=2) + "\n")


@contextlib.contextmanager
def _whole(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder to write into. A new one appears whole or not at all; in an existing one other files stay."""
    if folder.exists():
        yield folder
        return
    part = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        yield part
        for path in part.iterdir():
            _files.sync(path)
        _files.sync(part)
        os.rename(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    _files.sync(folder.parent)


def _raise_if_failed(ending: tuple[str, str, str]) -> None:
    code, _, message = ending
    if code != "OK":
        raise OSError(message)
