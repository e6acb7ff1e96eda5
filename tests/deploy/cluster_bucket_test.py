"""A release with its log in a bucket on a real cluster: two pods, of which one leads and the other waits. The leader is deleted, also by
force, and killed, then both are replaced; each time the run goes on with all its rounds. The seconds to the next round are printed.

What it needs of the environment: cluster.py. It makes a namespace of its own and deletes it at the end. The store of objects runs in
the test, at the address of this machine that the node sees.
"""
import contextlib
import os
import pathlib
import secrets
import signal
import socket
import sys
import time

import pytest

import cluster
import cluster_release
from charts import SOURCE
from cluster import LIMIT, SMALL, wait_for
from cluster_release import PODS, Watch

sys.path.insert(0, str(SOURCE / "tests/integration"))
from object_store import ACCESS, ObjectStore  # noqa: E402

pytestmark = cluster.needed

NAMESPACE = f"distro-bucket-{secrets.token_hex(3)}"


def address_for_pods():
    node = cluster.kubectl(NAMESPACE, "get", "nodes", "-o", 'jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}')
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((node.split()[0], 9))  # of two stacks the first
        return probe.getsockname()[0]


@pytest.fixture(scope="module")
def store():
    made = ObjectStore(address_for_pods())
    yield made
    made.close()


@pytest.fixture(scope="module")
def release(store, tmp_path_factory):
    """Volumes die with their pods: what is kept is in the bucket."""
    nothing = {"persistence": {"enabled": False}}
    values = {**cluster_release.VALUES, **nothing, "archiver": {"resources": SMALL, **nothing, "publish": {"enabled": False}},
              "replicaCount": 2, "log": {"url": "s3://runs/demo", "endpoint": store.url, "existingSecret": "distro-bucket"}}
    with cluster_release.secrets_in(NAMESPACE, tmp_path_factory.mktemp("credentials")) as folder:
        cluster.kubectl(NAMESPACE, "create", "secret", "generic", "distro-bucket",
                        *(f"--from-literal={name}={value}" for name, value in ACCESS.items()))
        with cluster_release.release_in(NAMESPACE, folder, values) as made:
            made.install()
            made.leader()  # Helm does not wait for pods that it does not update
            for name in ("worker-1", "worker-2"):
                made.start_worker(name)
            made.trains("installed")
            yield made


@pytest.fixture(scope="module")
def watch(release):
    return Watch(release)


def one_waits(release):
    def found():
        states = release.pods()
        if len(states) != 2 or sorted(states.values()) != [False, True]:
            return False
        with contextlib.suppress(AssertionError):  # its container has not started
            return "standby: another aggregator leads" in release.kubectl("logs", min(states, key=states.get), "-c", "aggregator")
    wait_for(found, "one pod leads, the other says that it waits")


def process_of(pod):
    """Its aggregator, where the node runs on this machine; None elsewhere."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "comm").read_text().startswith("distro-aggre") and f"HOSTNAME={pod}".encode() in (process / "environ").read_bytes().split(b"\0"):
                return int(process.name)
    return None


def seconds_to_next_round(release, what, happen):
    """Until another aggregator than now has closed a round."""
    epoch = int(wait_for(release.show, f"{what}: the aggregator answers")["epoch"])
    happen()
    begin, first = time.monotonic(), []

    def closed():
        shown = release.show()
        if not shown or int(shown["epoch"]) <= epoch:
            return False
        first.append(int(shown["round"].split()[0]))
        return first[-1] > first[0]
    wait_for(closed, f"{what}: a round under another leader")
    print(f"{what}: the next round after {time.monotonic() - begin:.1f} s")


def test_second_pod_goes_on_where_the_first_is_deleted(release, watch):
    one_waits(release)
    watch.goes_on("trains")
    for what, flags in (("leader deleted", ["--wait=false"]), ("leader deleted by force", ["--force", "--grace-period=0"])):
        leader = release.leader()
        seconds_to_next_round(release, what, lambda: release.kubectl("delete", "pod", leader, *flags))
        assert release.leader() != leader
        watch.goes_on(what)
        one_waits(release)


def test_goes_on_where_the_leader_is_killed(release, watch):
    one_waits(release)
    process = process_of(release.leader())
    if process is None:
        pytest.skip("the node runs on another machine")
    seconds_to_next_round(release, "leader killed", lambda: os.kill(process, signal.SIGKILL))
    watch.goes_on("leader killed")
    one_waits(release)


def test_goes_on_where_both_are_replaced(release, watch):
    release.kubectl("delete", "pod", "-l", PODS, f"--timeout={LIMIT}s")
    watch.goes_on("both replaced")
    one_waits(release)
    assert ", 0 differ" in release.log("replay")
