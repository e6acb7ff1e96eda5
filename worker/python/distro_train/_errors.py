"""The errors that end a run, by their reason in docs/protocol.md, "Statuses"."""

from __future__ import annotations

import re

# What distro-worker has flags for, by the argument of `connect` that says it here.
_ARGUMENTS = {
    "aggregator": "url",
    "ca": "ca",
    "cert": "cert",
    "data": "fingerprint",
    "insecure": "insecure=True",
    "invite": "invite",
    "key": "key",
    "name": "name",
    "server_name": "server_name",
    "state_dir": "state_dir",
    "threads": "torch.set_num_threads",
    "token_file": "token_file",
}
_FLAG = re.compile(rf"--({'|'.join(_ARGUMENTS)})\b|^(aggregator)(?=:)")


def in_python(message: str) -> str:
    """A message of the C++ side, with Python's arguments where it names flags of distro-worker."""
    return _FLAG.sub(lambda found: _ARGUMENTS[found[1] or found[2]], message)


class Error(Exception):
    """A run ended, or could not begin. `reason` is the word in logs and metrics, or empty. The message
    ends with the remedy."""

    remedy = ""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(f"{message} ({self.remedy})" if self.remedy else message)
        self.reason = reason
        self._message = message

    def __reduce__(self) -> tuple[type[Error], tuple[str, str]]:
        return type(self), (self._message, self.reason)


class NotReachable(Error):
    """No run was joined in time, or there is no way to an aggregator at the address: the message says why
    and has the remedy."""


class OtherRun(Error):
    """The aggregator's run is not the one that this worker belongs to."""

    remedy = "check the address, and what the run's config.json says of its model"


class OtherModel(Error):
    """The module has other tensors to train than the run. The message names them, with both shapes."""

    remedy = "make the module as the run's initial folder was made: the same layers, sizes and frozen parts"


class OtherData(Error):
    """The fingerprint is not that of the run's data."""

    remedy = "all workers of a run read the same data: check the data and `fingerprint`"


class OtherVersion(Error):
    """The aggregator does not support this version, or the run has a key that it does not know."""

    remedy = "use the aggregator's version"


class NotAuthorized(Error):
    """The aggregator refused the credential, or does not accept it for this name."""

    remedy = "check the token, and that it was made for this name"


class Quarantined(Error):
    """The aggregator accepts nothing from this worker until an operator admits it."""

    remedy = "fix the cause, then: distroctl admit NAME"


class Replaced(Error):
    """A newer process has this worker's name."""

    remedy = "if that process is not yours to replace this one, give each worker a name of its own"


class Diverged(Error):
    """The log does not continue the parameters, and taking a snapshot again did not help."""

    remedy = "start again; if it happens again, test the memory and the disk of this machine"


class TooSlow(Error):
    """The link could never catch up with the run."""

    remedy = "use a faster link, or join a run with smaller results"


class NotFinite(Error):
    """No step of this worker had a finite loss and gradient, for too many rounds."""

    remedy = "if others train well, check the data and this machine; if nobody does, the run has diverged"


_BY_REASON: dict[str, type[Error]] = {
    "certificate_dates": NotReachable,
    "diverged": Diverged,
    "name_mismatch": NotReachable,
    "no_answer": NotReachable,
    "not_finite": NotFinite,
    "other_data": OtherData,
    "other_model": OtherModel,
    "other_run": OtherRun,
    "other_service": NotReachable,
    "pruned": Diverged,
    "quarantined": Quarantined,
    "replaced": Replaced,
    "role": NotAuthorized,
    "tls_mismatch": NotReachable,
    "too_slow": TooSlow,
    "unauthenticated": NotAuthorized,
    "unreachable": NotReachable,
    "unresolved": NotReachable,
    "untrusted": NotReachable,
    "version": OtherVersion,
    "wrong_name": NotAuthorized,
}


def error_of(code: str, reason: str, message: str) -> Error:
    """The error for a status of the C++ side: by its reason, else by its code."""
    kind = _BY_REASON.get(reason)
    if kind is None and code == "UNAUTHENTICATED":
        kind = NotAuthorized
    return (kind or Error)(in_python(message), reason)
