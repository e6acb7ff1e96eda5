"""Joins a run: checks the arguments and returns the run."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import platform
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from . import _files, _library
from ._place import own_place
from ._progress import show_log
from ._ranks import Ranks
from ._ranks import ranks as find_ranks
from ._reader import Fingerprinted
from ._run import Run
from ._session import Session

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

    from ._sharded import Sharded


def connect(
    url: str | None = None,
    *,
    invite: str | os.PathLike[str] | None = None,
    ca: str | None = None,
    cert: str | None = None,
    key: str | None = None,
    server_name: str | None = None,
    token_file: str | None = None,
    token: str | None = None,
    insecure: bool = False,
    name: str | None = None,
    model: torch.nn.Module,
    state_dir: str | None = None,
    state_interval_rounds: int = 1,
    fingerprint: str | Fingerprinted | None,
    tokenizer: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    on_round: Callable[[dict[str, Any]], None] | None = None,
    data_mesh: DeviceMesh | None = None,
    mirrors: Sequence[str] | None = None,
) -> Run:
    """Joins the run of an aggregator and loads its newest parameters into `model`.

    invite       file made by `distroctl invite`: has address, CA, token and name, so that `url`, `ca`,
                 `token_file` and `name` are not needed. A given `url` is used instead of its address
    url          "host:port"
    ca           PEM file of the CA of the aggregator's certificate; None: the system's CAs
    token_file   file with this worker's token, one line; or `token`, the token itself
    cert, key    PEM files of this worker's certificate and its key, instead of a token
    server_name  name expected in the aggregator's certificate; None: the host of `url`
    insecure     plaintext without authentication, for tests
    name         of this worker in the run, [a-z0-9-]{1,63}
    model        parameters that require a gradient are trained: float32, or bfloat16 or float16 with
                 a float32 master copy, with the names and shapes of the run's model. The
                 result of torch.compile or DistributedDataParallel counts as the module itself. Also
                 what fully_shard (FSDP2) and parallelize_module made of it, and a stage of a pipeline
                 under the whole module's names: float32 what is trained
    state_dir    folder for this worker's own state, one per worker; None: no state is saved, and a
                 restarted process begins without momentum
    state_interval_rounds
                 rounds between saves; 0: saves only when the run is closed
    fingerprint  names the run's data, the same on all workers: a text of 1 to 128 bytes
                 (fingerprint_of_tokens for the files of distro-worker), or the data set, whose
                 attribute `fingerprint` is that text. None: no fingerprint, allowed only
                 if run.json has "data_fingerprint": "any"
    tokenizer    what made the tokens: the tokenizer's file, its SHA-256 in hexadecimal, or "bytes"
                 where a token is a byte. Needed in a run that has "tokenizer_sha256" in run.json,
                 and compared with it
    timeout      seconds until the module must have the run's parameters; None: no limit
    on_round     called after each round with the readings of Run.summary: on_round=wandb.log
    data_mesh    the processes that read different samples, such as mesh["dp"]; the others, of tensor
                 parallelism or a pipeline, read the same. None: all read different ones
    mirrors      URLs to fetch results and the snapshot from, []: from the aggregator alone; None:
                 those that the aggregator names

    In a process of `distro-train local` the run is the one on this machine, and this worker has a name and
    a state_dir of its own.

    After torch.distributed.init_process_group all its processes are one worker, and each calls this
    with the same arguments: rank 0 joins the run, the others get what the module is to be from it.

    ValueError: an argument or a parameter that cannot be; names it and says what to do. Error: the
    run cannot be joined; its class says why."""
    place = own_place()
    if place is not None:
        url, name, insecure = place.aggregator, place.name, True
        invite = ca = cert = key = server_name = token_file = token = None
        state_dir = place.state_dir() if state_dir is not None else None
    if token is not None and token_file is not None:
        raise ValueError("token, token_file: give one of them")
    if url is None and invite is None:
        raise ValueError('url: give the aggregator\'s "host:port", or an invite')
    if name is None and invite is None:
        raise ValueError("name: give this worker's name in the run, or an invite")
    if state_interval_rounds < 0:
        raise ValueError(f"state_interval_rounds: {state_interval_rounds} is below 0")
    show_log()
    said = _text_of(fingerprint)
    names, parameters = _library.trainable(model)
    named = dict(zip(names, parameters))
    in_parts = data_mesh is not None or any(map(_library.is_sharded, model.parameters()))
    ranks = find_ranks(model, in_parts, data_mesh)
    run = None
    try:
        sharded = _sharded_of(model, named, ranks) if in_parts else None
        machines = ranks.gather(platform.node())
        session = own_token_file = None
        if ranks.rank == 0:
            own_token_file = None if token is None else _write_token(token)
            options = {
                "aggregator": url or "",
                "invite": "" if invite is None else os.fspath(invite),
                "ca": ca or "",
                "cert": cert or "",
                "key": key or "",
                "server_name": server_name or "",
                "token_file": own_token_file or token_file or "",
                "insecure": "1" if insecure else "",
                "name": name or "",
                "state_dir": state_dir or "",
                "fingerprint": said or "",
                "mirrors": _text_of_mirrors(mirrors),
                "tokenizer": "" if tokenizer is None else _name_of_tokenizer(os.fspath(tokenizer)),
            }
            trained = named if sharded is None else sharded.wholes
            with _threads_of(machines.count(machines[0])):
                native = _library.new_session(list(trained), list(trained.values()), options, state_interval_rounds)
            session = Session(native, state_dir, ranks.sign_of_life)
        run = Run(session, ranks, model, named, sharded, said, own_token_file, on_round, place)
        run.begin(timeout)
    except BaseException:
        (run or ranks).close()
        raise
    return run


def _sharded_of(model: torch.nn.Module, named: dict[str, torch.nn.Parameter], ranks: Ranks) -> Sharded:
    from ._sharded import Sharded  # imports torch.distributed.tensor, which a program with shards has imported

    return Sharded(model, named, ranks)


@contextlib.contextmanager
def _threads_of(processes: int) -> Iterator[None]:
    """The C++ side compresses and applies with as many threads as PyTorch has meanwhile: those of all the worker's
    processes on this machine, which wait for this one, as far as there are cores. torchrun leaves each with one."""
    own = torch.get_num_threads()
    torch.set_num_threads(max(own, min(own * processes, len(os.sched_getaffinity(0)))))
    try:
        yield
    finally:
        torch.set_num_threads(own)


def _text_of(fingerprint: str | Fingerprinted | None) -> str | None:
    """ValueError: neither a text nor a data set with the attribute."""
    if fingerprint is None:
        return None
    text = fingerprint if isinstance(fingerprint, str) else getattr(fingerprint, "fingerprint", None)
    if not isinstance(text, str) or not 1 <= len(text.encode()) <= 128:
        raise ValueError(
            f"fingerprint: {text!r} of a {type(fingerprint).__name__} is no text of 1 to 128 bytes: give one that is "
            "the same on every worker, such as a hash of the data; or a data set with an attribute `fingerprint`; or "
            'None, for a run with "data_fingerprint": "any"'
        )
    return text


def _text_of_mirrors(mirrors: Sequence[str] | None) -> str:
    """As distro-worker's --mirrors. ValueError: no list of URLs."""
    if mirrors is None:
        return ""
    if isinstance(mirrors, (str, bytes)) or not all(isinstance(url, str) and url and "," not in url for url in mirrors):
        raise ValueError(f"mirrors: {mirrors!r} is no list of URLs: give one such as ['https://mirror.example']")
    return ",".join(mirrors) or "none"


def _name_of_tokenizer(tokenizer: str) -> str:
    """The form that the aggregator compares. ValueError: neither a file nor a name."""
    if tokenizer == "bytes" or re.fullmatch("[0-9a-fA-F]{64}", tokenizer):
        return tokenizer.lower()
    try:
        with _files.open_to_read(pathlib.Path(tokenizer)) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise ValueError(
            f"tokenizer: {tokenizer}: {error.strerror}; give the tokenizer's file, its SHA-256 in hexadecimal, or "
            '"bytes"'
        ) from None


def _write_token(token: str) -> str:
    """Writes the token to a file and returns its path."""
    handle, path = tempfile.mkstemp(prefix="distro-train-")  # readable by us alone
    with os.fdopen(handle, "w") as file:
        file.write(token + "\n")
    return path
