"""Trains any PyTorch module over the internet, in a run of DisTrO.

    import distro_train

    run = distro_train.connect(invite="w2.invite", model=model, state_dir="state", fingerprint=fingerprint)
    optimizer = distro_train.Optimizer(run)
    for batch in run.batches(dataset, collate):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step(loss)
    run.save("checkpoint")

The module's own tensors are trained. The aggregator assigns samples to this worker, and combines the
updates of all workers into one change of the parameters. After every round all workers have the same
bits. User guide: docs/python.md. Log messages go to the logger "distro_train".
"""

from ._connect import connect
from ._errors import (
    Diverged,
    Error,
    NotAuthorized,
    NotFinite,
    NotReachable,
    OtherData,
    OtherModel,
    OtherRun,
    OtherVersion,
    Quarantined,
    Replaced,
    TooSlow,
)
from ._fingerprint import fingerprint_of_dataset
from ._initial import save_initial
from ._library import fingerprint_of_tokens
from ._memory import ParameterMemory
from ._optimizer import Optimizer
from ._run import Run

__all__ = [
    "Diverged",
    "Error",
    "NotAuthorized",
    "NotFinite",
    "NotReachable",
    "Optimizer",
    "OtherData",
    "OtherModel",
    "OtherRun",
    "OtherVersion",
    "ParameterMemory",
    "Quarantined",
    "Replaced",
    "Run",
    "TooSlow",
    "connect",
    "fingerprint_of_dataset",
    "fingerprint_of_tokens",
    "save_initial",
]
