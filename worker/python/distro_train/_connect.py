"""How a program becomes a worker: arguments in, a joined run out."""

from __future__ import annotations

import os
import tempfile

import torch

from . import _library
from ._errors import error_of
from ._run import Run


def connect(
    url: str,
    *,
    ca: str | None = None,
    token_file: str | None = None,
    token: str | None = None,
    insecure: bool = False,
    name: str,
    model: torch.nn.Module,
    state_dir: str | None = None,
    state_interval_rounds: int = 1,
    fingerprint: str,
    timeout: float | None = None,
) -> Run:
    """Joins the run of an aggregator and loads its newest parameters into `model`.

    url          "host:port"
    ca           PEM file of who issued the aggregator's certificate; None: the system's
    token_file   file with this worker's token, one line; or `token`, the token itself
    insecure     plaintext, nobody is authenticated: for tests
    name         of this worker in the run, [a-z0-9-]{1,63}
    model        parameters that require a gradient are trained: float32, or bfloat16 or float16 with
                 a float32 master copy, with the names and shapes of the run's model
    state_dir    folder in which this worker's own state is kept, one a worker; None: none is, and a
                 process that is started again begins without momentum
    state_interval_rounds
                 rounds between saves; 0: only when it is closed
    fingerprint  text that all workers of the run share and that names its data
                 (fingerprint_of_tokens for the files of distro-worker)
    timeout      seconds to wait for a run to join; None: as long as it takes

    ValueError: an argument or a parameter that cannot be; names it and says what to do. Error: the
    run cannot be joined; its class says why."""
    if token is not None and token_file is not None:
        raise ValueError("token, token_file: give one of them")
    if state_interval_rounds < 0:
        raise ValueError(f"state_interval_rounds: {state_interval_rounds} is below 0")
    own_token_file = None
    if token is not None:
        handle, own_token_file = tempfile.mkstemp(prefix="distro-train-")  # readable by us alone
        with os.fdopen(handle, "w") as file:
            file.write(token + "\n")
    names, parameters = _library.trainable(model)
    options = {
        "aggregator": url,
        "ca": ca or "",
        "token_file": own_token_file or token_file or "",
        "insecure": "1" if insecure else "",
        "name": name,
        "state_dir": state_dir or "",
        "fingerprint": fingerprint,
    }
    session = _library.new_session(names, parameters, options, state_interval_rounds)
    run = Run(session, dict(zip(names, parameters)), state_dir, own_token_file)
    try:
        code, reason, message = session.start()
        if code == "INVALID_ARGUMENT":
            raise ValueError(message)
        if code != "OK":
            raise error_of(code, reason, message)
        run.begin(timeout)
    except BaseException:
        run.close()
        raise
    return run
