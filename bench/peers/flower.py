#!/usr/bin/env python3
"""Flower's server and W clients, a process each, over gRPC: a round sends --down_bytes to every client and takes --up_bytes from each. Nothing
is combined: it measures only the transfer."""
import logging
import multiprocessing
import os
import socket
import time

import peer

peer.enter_environment("peers-flower", ("flwr==1.41.0",))
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
from flwr.common import Code, FitIns, FitRes, Parameters, Status  # noqa: E402
from flwr.compat.client.app import start_client  # noqa: E402
from flwr.compat.client.client import Client  # noqa: E402
from flwr.compat.server.app import start_server  # noqa: E402
from flwr.server import ServerConfig  # noqa: E402
from flwr.server.strategy import Strategy  # noqa: E402


class UpdateClient(Client):
    def __init__(self, up_bytes):
        self.update = Parameters([bytes(up_bytes)], "bytes")

    def fit(self, ins):
        return FitRes(Status(Code.OK, ""), self.update, 1, {"cpu": time.process_time()})


class MoveBytes(Strategy):
    """Records, after each round, the time and the processor time of the server and of all clients."""

    def __init__(self, listening, workers, down_bytes):
        self.listening, self.workers, self.result, self.times = listening, workers, Parameters([bytes(down_bytes)], "bytes"), []

    def initialize_parameters(self, client_manager):
        self.listening.set()
        return self.result

    def configure_fit(self, server_round, parameters, client_manager):
        client_manager.wait_for(self.workers)
        return [(client, FitIns(self.result, {})) for client in client_manager.all().values()]

    def aggregate_fit(self, server_round, results, failures):
        if failures or len(results) != self.workers:
            raise SystemExit(f"round {server_round}: {len(results)} of {self.workers} clients answered: {failures[:1]}")
        self.times.append((time.monotonic(), time.process_time(), sum(answer.metrics["cpu"] for _, answer in results)))
        return self.result, {}

    def configure_evaluate(self, server_round, parameters, client_manager):
        return []

    def aggregate_evaluate(self, server_round, results, failures):
        return None, {}

    def evaluate(self, server_round, parameters):
        return None


def serve_client(listening, address, up_bytes):
    listening.wait()
    start_client(server_address=address, client=UpdateClient(up_bytes), insecure=True)


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def main():
    options = peer.parse_arguments(__doc__)
    logging.getLogger("flwr").setLevel(logging.ERROR)
    address = free_address()
    fork = multiprocessing.get_context("fork")
    listening = fork.Event()
    clients = [fork.Process(target=serve_client, args=(listening, address, options.up_bytes)) for _ in range(options.workers)]
    for client in clients:  # before the server starts the threads of gRPC, which a fork would not carry over
        client.start()
    strategy = MoveBytes(listening, options.workers, options.down_bytes)
    start_server(server_address=address, config=ServerConfig(num_rounds=options.rounds + 1), strategy=strategy)
    for client in clients:
        client.join()
    wall, server, others = ((last - first) / options.rounds for first, last in zip(strategy.times[0], strategy.times[-1]))
    peer.report(options.up_bytes, options.down_bytes, wall, server + others, server)


if __name__ == "__main__":
    main()
