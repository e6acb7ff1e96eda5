"""The whole module of a run: what it trains, and the rest, which every worker has the same."""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import json
import logging
from typing import Any

import torch

from ._errors import OtherModel
from ._library import local_of, plain_name, trainable, unwrapped
from ._ranks import Ranks

_log = logging.getLogger("distro_train")
# Of an adapter's configuration: which peft a machine has, and where the base model, which is compared by content.
_OF_A_MACHINE = ("base_model_name_or_path", "revision", "auto_mapping", "inference_mode", "peft_version")


def entries(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The state dict: parameters and persistent buffers themselves, each also under the names that are tied to it.
    Without the module's hooks, which give parameters other names or copies, and may gather them."""
    state: dict[str, Any] = {}
    for name, module in unwrapped(model).named_modules(remove_duplicate=False):
        module._save_to_state_dict(state, f"{name}." if name else "", keep_vars=True)
    return {plain_name(name): value for name, value in state.items() if isinstance(value, torch.Tensor)}


def content_of(tensor: torch.Tensor) -> bytes:
    """The bytes of the elements."""
    own = tensor.detach().cpu().contiguous()
    return ctypes.string_at(own.data_ptr(), own.nbytes) if own.nbytes > 0 else b""


def describe(model: torch.nn.Module, ranks: Ranks) -> dict[str, Any]:
    """What every worker's module must be: names and shapes of the trained tensors; type, shape and SHA-256 of all
    others of the state dict; the configuration of adapters, and which of its fields have the value of their class. Of
    a module in parts every process calls this."""
    names, parameters = trainable(model)
    return {
        "trained": {name: list(value.shape) or [1] for name, value in zip(names, parameters)},
        "rest": {name: _facts(ranks.whole(value)) for name, value in _rest(model).items()},
        "adapters": {name: _settings(settings) for name, settings in adapters_of(model).items()},
        "defaults": {name: _defaults(settings) for name, settings in adapters_of(model).items()},
    }


def adapters_of(model: torch.nn.Module) -> dict[str, Any]:
    """The configurations of peft, by name of the adapter."""
    found = getattr(unwrapped(model), "peft_config", None)
    return dict(found) if isinstance(found, dict) else {}


def check(model: torch.nn.Module, description: str, ranks: Ranks) -> None:
    """OtherModel, in every process: what is not trained is not that of the run; names the first that differs.
    `description`: the run's distro_module.json, empty if it has none."""
    if not description:
        rest = _rest(model)
        if rest:
            _log.warning(
                "%d tensors of the module are not trained, such as %r, and nothing compares them with those of other "
                "workers: make the run's folder with distro_train.save_initial",
                len(rest),
                next(iter(rest)),
            )
        return
    run = _parsed(description)
    every = ranks.gather(describe(model, ranks))
    for own in every:  # a stage of a pipeline has only a part: what it lacks counts as the run's
        _compare_module({what: run[what] | own[what] for what in run}, run)
    _compare_module({what: {name: one for own in every for name, one in own[what].items()} for what in run}, run)


class Buffers:
    """The persistent buffers of a module, as they were when this was made."""

    def __init__(self, model: torch.nn.Module) -> None:
        every = entries(model).items()
        found = {name: local_of(value) for name, value in every if not isinstance(value, torch.nn.Parameter)}
        self._kept = {name: (value, value.detach().clone()) for name, value in found.items()}
        self._told = False

    def restore(self) -> None:
        """Sets them back, so that they are the same on every worker. Says once which changed."""
        changed = [name for name, (value, kept) in self._kept.items() if not torch.equal(value, kept)]
        if changed and not self._told:
            self._told = True
            _log.warning(
                "forward changes %d buffers, such as %r: no round carries them, and they are set back after each to "
                "what connect found; torch.optim.swa_utils.update_bn computes those of batch normalization at the end",
                len(changed),
                changed[0],
            )
        with torch.no_grad():
            for name in changed:
                value, kept = self._kept[name]
                value.copy_(kept)


def _rest(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The entries that are not trained."""
    trained = {id(value) for value in trainable(model)[1]}
    return {name: value for name, value in entries(model).items() if id(value) not in trained}


def _parsed(description: str) -> dict[str, dict[str, Any]]:
    """OtherModel: it is no description; an aggregator may send anything."""
    try:
        said = json.loads(description)
        rest, adapters = dict(said["rest"]), {name: _of_model(one) for name, one in said["adapters"].items()}
        defaults = {name: list(fields) for name, fields in said.get("defaults", {}).items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise OtherModel(
            "the run's distro_module.json does not describe a module: it is not of distro_train.save_initial",
            "other_model",
        ) from None
    return {"rest": rest, "adapters": adapters, "defaults": defaults}


def _facts(tensor: torch.Tensor) -> list[Any]:
    """[type, shape, SHA-256 of the elements]."""
    kind = str(tensor.dtype).removeprefix("torch.")
    return [kind, list(tensor.shape), hashlib.sha256(content_of(tensor)).hexdigest()]


def _settings(adapter: Any) -> dict[str, Any]:
    plain = {key: sorted(value) if isinstance(value, set) else value for key, value in adapter.to_dict().items()}
    said: dict[str, Any] = json.loads(json.dumps(plain, default=str, sort_keys=True))
    return _of_model(said)


def _of_model(settings: Any) -> dict[str, Any]:
    return {key: value for key, value in dict(settings).items() if key not in _OF_A_MACHINE}


def _defaults(adapter: Any) -> list[str]:
    """The fields that have the value of their class."""
    fields = dataclasses.fields(adapter) if dataclasses.is_dataclass(adapter) else ()
    return [
        field.name
        for field in fields
        if getattr(adapter, field.name)
        == (field.default if field.default_factory is dataclasses.MISSING else field.default_factory())
    ]


def _compare_module(ours: dict[str, dict[str, Any]], theirs: dict[str, dict[str, Any]]) -> None:
    _compare("", "is no part of the run's module", ours["rest"], theirs["rest"])
    for name in sorted({*ours["adapters"], *theirs["adapters"]}):
        own, run = _to_compare(name, ours, theirs), _to_compare(name, theirs, ours)
        _compare(f"adapter {name!r}: ", "is not set in the run's module", own, run)


def _to_compare(name: str, one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One's settings of an adapter, without the defaults that the other's version of peft does not know."""
    known, defaults = other["adapters"].get(name, {}), one["defaults"].get(name, [])
    settings = one["adapters"].get(name, {})
    return {key: value for key, value in settings.items() if key in known or key not in defaults}


def _compare(where: str, unknown: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    for name in (*theirs, *ours):
        if name not in ours:
            raise OtherModel(f"{where}{name!r} is missing, which the run's module has", "other_model")
        if name not in theirs:
            raise OtherModel(f"{where}{name!r} {unknown}", "other_model")
        if ours[name] != theirs[name]:
            raise OtherModel(f"{where}{name!r} differs: {_difference(ours[name], theirs[name])}", "other_model")


def _difference(ours: Any, theirs: Any) -> str:
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs) == 3 and ours[:2] == theirs[:2]:
        return "it has other values than the run's"
    shown = [
        " ".join(map(str, one[:2])) if isinstance(one, list) and len(one) == 3 else repr(one) for one in (ours, theirs)
    ]
    return f"it is {shown[0]}, and the run's is {shown[1]}"
