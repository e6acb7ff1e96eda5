"""Faults of the data folder: damage at rest, and a file system that is read-only for a while."""
import re
import subprocess
import time

from attacks.registry import attack

LOOK_SECONDS, READ_ONLY_SECONDS = 5, 3
STARTED = re.compile(r'^grpc_server_started_total\{[^}]*grpc_method="SubscribeRounds"[^}]*\} (\d+)', re.M)


def damage(bed):
    """Changes a byte of the payload of an old record, then lets an archiver and a new worker follow."""
    path = bed.data_dir / "rounds" / f"{3:010}.record"
    with open(path, "r+b") as record:
        record.seek(16 + 60)
        byte = record.read(1)[0]
        record.seek(16 + 60)
        record.write(bytes([byte ^ 0x10]))
    bed.start_archiver()
    bed.start_worker("fresh-a")
    time.sleep(LOOK_SECONDS)
    before = subscriptions(bed)
    time.sleep(LOOK_SECONDS)
    return {"subscriptions_a_second": round((subscriptions(bed) - before) / LOOK_SECONDS, 1),
            "log_names_it": bool(re.search(r"(ERROR|WARN)\S* .*0000000003\.record", bed.aggregator.log()))}


def subscriptions(bed):
    found = STARTED.search(bed.aggregator.get("/metrics")[1])
    return int(found[1]) if found else 0


def told_and_calm(bed, told):
    faults = [] if told["log_names_it"] else ["the aggregator's log does not name the damaged record"]
    if told["subscriptions_a_second"] > 2:
        faults.append(f"joiner and archiver come back {told['subscriptions_a_second']} times a second")
    return faults


@attack("damaged_record", "one byte of an old record changed at rest; an archiver and a new worker follow", credential="disk", in_all=False,
        meanwhile=damage, check=told_and_calm, begin_round=120, flags=("--ring_bytes", "8192"), log_stays=False)
def damaged_record(_):
    return {}


MOUNT = 'mkdir -p "$0" && mount -t tmpfs -o size=256m tmpfs "$0" && exec "$@"'


def cannot_mount():
    done = subprocess.run(["unshare", "-m", "sh", "-c", MOUNT, "/tmp", "true"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"no mount namespace: {done.stderr.strip()}"


def in_namespace(bed, command):
    return subprocess.run(["nsenter", "-t", str(bed.aggregator.child.pid), "-m", "sh", "-c", command, str(bed.data_dir)],
                          capture_output=True, text=True)


# Beside the folder first, where nobody writes: a mount with a file open for writing is busy and does not become read-only.
COVER = 'mkdir "$0.cover" && mount --bind "$0" "$0.cover" && mount -o remount,ro,bind "$0.cover" && mount --move "$0.cover" "$0"'


def read_only(bed):
    """A read-only mount of the folder over itself: files that are open hold the one below writable, and nothing else sees it."""
    done = in_namespace(bed, COVER)
    told = {"became_read_only": done.returncode == 0, "said": done.stderr.strip()[-100:]}
    round_then = bed.committed()
    time.sleep(READ_ONLY_SECONDS)
    told["rounds_meanwhile"] = bed.committed() - round_then
    in_namespace(bed, 'umount "$0"')
    bed.await_round(bed.committed() + 5, 10)
    told["log_says_disk"] = "disk" in bed.aggregator.log()
    return told


def held_and_went_on(bed, told):
    if not told["became_read_only"]:
        return [f"the remount was not possible: {told['said']}"]
    faults = [] if told["rounds_meanwhile"] <= 1 else [f"{told['rounds_meanwhile']} rounds were committed on a read-only disk"]
    return faults + ([] if told["log_says_disk"] else ["the log does not say that the disk refuses"])


@attack("read_only", f"the data folder is read-only for {READ_ONLY_SECONDS} s", credential="disk", in_all=False, meanwhile=read_only,
        check=held_and_went_on, refusable=cannot_mount, private_folder=True, log_stays=False)
def read_only_folder(_):
    return {}
