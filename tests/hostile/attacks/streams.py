"""Opens streams and keeps them open."""
import time

import http2
from attacks.connections import fresh_worker_joins
from attacks.registry import attack
from http2 import Connection, grpc_fields, message

STREAMS_OF_CONNECTION = 32
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
WATCH = "/grpc.health.v1.Health/Watch"
SUBSCRIBE = "/distro.v1.AggregatorService/SubscribeRounds"
REFLECTION_STREAMS, WATCH_STREAMS, SUBSCRIPTIONS = 1600, 1920, 4096
AGAIN_PER_SECOND = 10
MOST_HELD = 256  # of one kind, by those who show no credential or one: far below what was asked for
LIST_SERVICES = b"\x3a\x00"  # ServerReflectionRequest.list_services = ""


def open_streams(target, number, path, request, token, more_follows):
    """A connection with as many streams as one may have."""
    connection = Connection(target.grpc, target.ca, target.source(number), 3)
    for _ in range(STREAMS_OF_CONNECTION):
        stream = connection.open_stream(grpc_fields(path, token))
        connection.send(http2.frame(http2.DATA, 0 if more_follows else 1, stream, message(request)))
    return connection


def still_open(connection):
    """Whether streams are left, after what has come was read."""
    try:
        connection.read(0)
    except OSError:
        return False
    if connection.open_streams() == 0:
        connection.close()
    return not connection.closed


def hold(target, streams, path, request, token=None, more_follows=False):
    """Opens streams, 32 a connection, and reads what comes until the end; what was closed is opened anew, AGAIN_PER_SECOND."""
    wanted = streams // STREAMS_OF_CONNECTION
    held, opened, refused, most, begin = [], 0, 0, 0, time.monotonic()
    while target.goes_on():
        allowed = wanted + AGAIN_PER_SECOND * (time.monotonic() - begin)
        while len(held) < wanted and opened + refused < allowed and target.goes_on():
            try:
                held.append(open_streams(target, opened, path, request, token, more_follows))
                opened += 1
            except OSError:
                refused += 1
        held = [connection for connection in held if still_open(connection)]
        most = max(most, sum(connection.open_streams() for connection in held))
        time.sleep(0.02)
    return {"connections": opened, "refused": refused, "streams_at_most": most,
            "streams_at_the_end": sum(connection.open_streams() for connection in held)}


def bounded(bed, told):
    """Streams are bounded in number, and a worker finds room."""
    held = told["streams_at_most"]
    return fresh_worker_joins(bed, told) + ([f"{held} streams were held"] if held > MOST_HELD else [])


@attack("reflection_streams", f"{REFLECTION_STREAMS} streams of server reflection, held", check=bounded)
def reflection_streams(target):
    return hold(target, REFLECTION_STREAMS, REFLECTION, LIST_SERVICES, more_follows=True)


@attack("health_watch", f"{WATCH_STREAMS} health Watch streams, held", check=bounded)
def health_watch(target):
    return hold(target, WATCH_STREAMS, WATCH, b"")


@attack("subscriptions", f"an archiver's credential opens {SUBSCRIPTIONS} subscriptions", credential="archiver",
        check=bounded, seconds=9)
def subscriptions(target):
    from client.messages import pb
    from client.session import Caller
    archiver = Caller(target.grpc, target.ca, target.tokens["archiver"])
    run = archiver.get_run()
    archiver.close()
    request = pb.SubscribeRoundsRequest(run_id=run.run_id, from_round=run.round, last_hash=run.log_hash)
    return hold(target, SUBSCRIPTIONS, SUBSCRIBE, request.SerializeToString(), target.tokens["archiver"])
