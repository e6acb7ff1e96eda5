"""Payload bytes, as both processes count them, against what the kernel's TCP counted, in each direction: the difference is the
overhead that docs/metrics.md states. The worker is in a network namespace of its own, so no other traffic is counted."""
import pathlib
import re
import subprocess
import sys
import time

import processes
from processes import ProcessTest, Worker, until

sys.path.append(str(pathlib.Path(__file__).parents[1] / "deploy"))
from shaped_links import Hub, Refused  # noqa: E402

OVERHEAD = 1.02  # of payload bytes, at frames of some 100 KB
FETCH = "import sys, urllib.request as u; sys.stdout.write(u.urlopen('http://' + sys.argv[1] + '/metrics').read().decode())"


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, timeout=60).stdout


def tcp_bytes(prefix, port):
    """(sent and acknowledged, received) of all connections to or from the port in a namespace."""
    text = run(*prefix, "ss", "-tinHO", "state", "established", f"( sport = :{port} or dport = :{port} )")
    return tuple(sum(map(int, re.findall(rf"\b{field}:(\d+)", text))) for field in ("bytes_acked", "bytes_received"))


def total(page, name):
    return sum(float(number) for number in re.findall(rf"^{name}{{[^}}]*}} (\S+)$", page, re.M))


def bulk(page):
    return re.findall(r'^distro_\w+_bytes_total{[^}]*kind="(?:update|result|snapshot)".*', page, re.M)


class WireBytesTest(ProcessTest):
    def setUp(self):
        super().setUp()
        try:
            self.hub = Hub().__enter__()
        except (Refused, FileNotFoundError) as why:
            self.skipTest(f"no network namespaces here: {why}")
        self.addCleanup(self.hub.__exit__)

    def start(self):
        space = self.workspace
        try:
            self.link = self.hub.link(up=400e6, down=400e6)
        except Refused as why:
            self.skipTest(f"no network namespaces here: {why}")
        space.model = {"hidden_size": 256, "intermediate_size": 1024}
        self.aggregator = space.start_aggregator(
            "--run", space.write_run(rounds=100000, kept_per_block=512, max_workers=8, segment_blocks=128, held_out_fraction=0),
            "--model", space.init_model(), "--heartbeat_interval", "5s", "--suspect_after", "20s", listen="0.0.0.0:0")
        self.port = self.aggregator.grpc.rsplit(":", 1)[1]
        command = [*self.link.prefix, self.binaries.worker, "--aggregator", f"{self.link.address}:{self.port}", "--data",
                   space.text, "--name", "far", "--insecure"]
        self.worker = Worker("far", command, space.folder)
        space.processes.append(self.worker)

    def pages(self):
        return (self.aggregator.get("/metrics")[1],
                run(*self.link.prefix, sys.executable, "-c", FETCH, self.worker.find(processes.HTTP_PORT)[1]))

    def moved(self):
        """Payload bytes up and down by each process, and the kernel's by each end, while nothing but heartbeats goes on."""
        while True:
            before = self.pages()
            far, near = tcp_bytes(self.link.prefix, self.port), tcp_bytes((), self.port)
            if [bulk(page) for page in self.pages()] == [bulk(page) for page in before]:
                aggregator, worker = before
                return {
                    "up": (total(aggregator, "distro_aggregator_received_bytes_total"),
                           total(worker, "distro_worker_sent_bytes_total"), near[1], far[0]),
                    "down": (total(aggregator, "distro_aggregator_sent_bytes_total"),
                             total(worker, "distro_worker_received_bytes_total"), near[0], far[1])}
            time.sleep(0.05)

    def test_payload_and_kernel_agree_within_the_overhead(self):
        self.start()
        self.aggregator.await_round(20)
        address = f"127.0.0.1:{self.port}"
        self.workspace.distroctl("run", "pause", address, "--insecure")
        until(lambda: self.aggregator.metric("distro_aggregator_run_state", state="paused") == 1, "the pause")
        for direction, (aggregator, worker, near, far) in self.moved().items():
            print(f"{direction}: payload {aggregator:.0f} (aggregator) {worker:.0f} (worker), "
                  f"tcp {near} (aggregator) {far} (worker): {max(near, far) / min(aggregator, worker) - 1:.2%} overhead")
            self.assertGreater(worker, 1e6, direction)
            for counted in (aggregator, worker):
                for wire in (near, far):
                    self.assertLess(counted, wire, direction)
                    self.assertLess(wire, OVERHEAD * counted, direction)


if __name__ == "__main__":
    processes.main()
