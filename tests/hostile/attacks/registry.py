"""The class Attack. Its `act` is called with a Target in a separate process; its result (a dictionary that JSON can
hold) is shown, and given to `check` in the measuring process."""
import dataclasses
import json
import time

ATTACKS = {}


@dataclasses.dataclass
class Attack:
    name: str
    says: str                  # one line for --help and the table
    act: object                # act(target) -> dict
    credential: str = ""       # "": none; else the role
    seconds: float = 7         # how long it goes on, at most
    check: object = None       # check(bed, told) -> what did not hold, as a list of sentences
    meanwhile: object = None   # meanwhile(bed), while it is measured
    prefix: tuple = ()         # in front of the aggregator's command
    flags: tuple = ()          # of the aggregator
    begin_round: int = 20      # committed rounds before it begins
    workers: int = 2           # honest ones
    in_all: bool = True        # takes part in "everything at once"
    refusable: object = None   # refusable() -> why this machine or run does not permit it, or ""
    run: dict = dataclasses.field(default_factory=dict)  # of the run's configuration
    log_stays: bool = True     # whether `distroctl log replay` can and must hold afterwards
    private_folder: bool = False  # the data folder is on a file system of its own, of the aggregator only


def attack(name, says, **how):
    def register(act):
        ATTACKS[name] = Attack(name, says, act, **how)
        return act
    return register


class Target:
    """An attacker's knowledge of an aggregator."""

    def __init__(self, described, seconds, same_address):
        known = json.loads(described)
        self.grpc, self.http, self.ca, self.tokens = known["grpc"], known["http"], known["ca"], known["tokens"]
        self.version, self.fingerprint = known["version"], known["fingerprint"]
        self.seconds, self._same = seconds, same_address
        self._end = time.monotonic() + seconds

    def source(self, number=0):
        """Where connection `number` comes from: 127.0.0.2 and up, or the honest workers' own address."""
        return "127.0.0.1" if self._same else f"127.0.0.{2 + number % 8}"

    def left(self):
        return self._end - time.monotonic()

    def goes_on(self):
        return self.left() > 0
