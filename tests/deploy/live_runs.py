"""Four real aggregators, for a real Prometheus to look at:

    shaped  three workers on links of 1:10, `slow` at seven tenths of the others' speed; an archiver; a deadline
    disk    three workers of which two are needed, an archiver, the data on a small tmpfs of its own
    tls     a certificate, no run
    broken  a run of one worker whose initial model gives no finite loss
"""
import pathlib
import re
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration"))

import shaped_links  # noqa: E402
from processes import Aggregator, Worker, Workspace, programs_in  # noqa: E402

MODEL = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2}
# A rate at which norms are near 1 for as long as the tests last: corrupt_replica finds them by that.
RUN = {"rounds": 100000, "kept_per_block": 1024, "max_workers": 31, "segment_blocks": 16384, "warmup_rounds": 5,
       "peak_learning_rate": 2e-4, "evaluation_interval_rounds": 2, "probation_rounds": 0}
UP, SLOW = 200e3, 140e3  # bits a second
MOUNT = 'mkdir -p "$0" && mount -t tmpfs -o size=64m tmpfs "$0" && exec "$@"'
TIMES = ("--heartbeat_interval", "1s", "--suspect_after", "8s", "--lease", "10m")
STRIDE = 256  # bytes; a norm has twice as many


def overflow(model):
    """Writes weights whose products are beyond float32."""
    path = model / "model.safetensors"
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    path.write_bytes(data[:begin] + struct.pack("<f", 1e30) * ((len(data) - begin) // 4))


def near_ones(content):
    """Offsets in memory of 65 floats or more in a row that are all near 1, of those that begin at a multiple of STRIDE."""
    high, low = content[3::STRIDE], content[2::STRIDE]
    for match in re.finditer(rb"(?=\x3f\x3f)", high):
        at = match.start()
        if 0x60 <= low[at] < 0x90 and 0x60 <= low[at + 1] < 0x90:
            values = struct.unpack_from(f"<{STRIDE // 4 + 1}f", content, at * STRIDE)
            if all(0.85 < value < 1.15 for value in values):
                yield at * STRIDE


def corrupt_replica(worker):
    """Changes a norm's weights, which are near 1, in the memory of a worker; how many copies of them it found."""
    worker.freeze()
    found = 0
    try:
        for line in pathlib.Path(f"/proc/{worker.child.pid}/maps").read_text().splitlines():
            place, rights, _, _, inode, *_ = line.split()
            first, last = (int(part, 16) for part in place.split("-"))
            if not rights.startswith("rw") or inode != "0" or last - first > 1 << 28:
                continue
            with open(f"/proc/{worker.child.pid}/mem", "r+b", buffering=0) as memory:
                memory.seek(first)
                for offset in near_ones(memory.read(last - first) or b""):
                    memory.seek(first + offset)
                    memory.write(struct.pack("<f", 1.75))
                    found += 1
    finally:
        worker.thaw()
    return found


def try_mount(folder):
    """Raises Refused where a process cannot have a small file system of its own."""
    shaped_links.run("unshare", "-rm", "sh", "-c", MOUNT, folder / "mounted", "true")


class Runs:
    def __init__(self, hub, folder):
        self.programs = programs_in(folder)
        self.hub, self.spaces, self.workers, self.proxies, self.archivers = hub, {}, {}, {}, {}
        self.aggregators = {}
        try:
            for name in ("shaped", "disk", "tls", "broken"):
                self.aggregators[name] = getattr(self, f"make_{name}")()
        except BaseException:
            self.close()
            raise

    def close(self):
        for space in self.spaces.values():
            space.close()

    def logs(self):
        return "\n".join(f"== {name}\n{space.logs()}" for name, space in self.spaces.items())

    def space(self, name):
        space = Workspace(self.programs)
        space.model = MODEL
        self.spaces[name] = space
        return space

    def start(self, space, run, **places):
        return space.start_aggregator("--run", space.write_run(**RUN, **run), "--model", space.init_model(), *TIMES,
                                      prefix=self.tmpfs(space), **places)

    def tmpfs(self, space):
        """In front of a command: its data is on a file system of its own, whatever the machine's disk has left."""
        return ("unshare", "-rm", "sh", "-c", MOUNT, space.data_dir)

    def target(self, name):
        return self.aggregators[name].http()

    def make_shaped(self):
        run = {"start_workers": 3, "min_workers": 1, "round_deadline": "16s", "min_round_deadline": "16s", "overlap": 0}
        space = self.space("shaped")
        return self.start(space, run, listen="0.0.0.0:0")

    def make_disk(self):
        space = self.space("disk")
        run = {"start_workers": 3, "min_workers": 2, "round_deadline": "8s", "min_round_deadline": "8s"}
        return self.start(space, run)

    def make_tls(self):
        space = self.space("tls")
        space.distroctl("certs", "--out", space.folder / "certs", "--host", "127.0.0.1")
        self.certificate, self.key = space.folder / "certs/server.pem", space.folder / "certs/server-key.pem"
        port_file = space.folder / "aggregator.ports"
        command = [*self.tmpfs(space), self.programs.aggregator, "--data_dir", space.data_dir, "--listen", "127.0.0.1:0",
                   "--http", "127.0.0.1:0", "--cert", self.certificate, "--key", self.key, "--ca",
                   space.folder / "certs/ca.pem", "--port_file", port_file]
        space.processes.append(Aggregator("aggregator", command, space.folder, port_file))
        return space.processes[-1].await_ports()

    def make_broken(self):
        space = self.space("broken")
        overflow(space.init_model())
        return space.start_aggregator("--run", space.write_run(**RUN), "--model", space.folder / "model", *TIMES,
                                      "--ring_bytes", "1", prefix=self.tmpfs(space))  # what was committed is read from the log

    def start_workers(self):
        """Those of the healthy runs."""
        self.links = {name: self.hub.link(up=up, down=10 * up) for name, up in (("fast-1", UP), ("fast-2", UP), ("slow", SLOW))}
        port = self.aggregators["shaped"].grpc.rsplit(":", 1)[1]
        space = self.spaces["shaped"]
        for name, link in self.links.items():
            command = [*link.prefix, self.programs.worker, "--aggregator", f"{link.address}:{port}", "--data", space.text,
                       "--name", name, "--insecure"]
            self.workers[name] = Worker(name, command, space.folder)
            space.processes.append(self.workers[name])
        self.archivers["shaped"] = space.start_archiver(f"127.0.0.1:{port}", "--snapshot_interval_rounds", 2)
        space = self.spaces["disk"]
        for name in ("disk-1", "disk-2", "disk-3"):
            proxy = space.start_proxy(self.aggregators["disk"].grpc)
            proxy.bytes_per_second = 100000
            self.proxies[name] = proxy
            self.workers[name] = space.start_worker(name, proxy.address)
        self.archivers["disk"] = space.start_archiver(self.aggregators["disk"].grpc, "--snapshot_interval_rounds", 4)

    def start_broken_worker(self):
        self.workers["broken"] = self.spaces["broken"].start_worker(
            "broken", self.aggregators["broken"].grpc, "--hold_back", "3s")  # it ends after 20 rounds, which alerts must see

    def end_certificate_soon(self):
        new = self.certificate.with_suffix(".new")
        subprocess.run(["openssl", "req", "-x509", "-key", self.key, "-days", "3", "-subj", "/CN=127.0.0.1",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-out", new],
                       check=True, capture_output=True)
        new.replace(self.certificate)

    def refuse_calls(self):
        """With a token that the aggregator does not know."""
        space = self.spaces["tls"]
        made = space.distroctl("token", "new", "stranger", "--role", "viewer")
        token = space.folder / "stranger.token"
        token.write_text(re.search(r"^token +(\S+)", made, re.MULTILINE)[1])
        token.chmod(0o600)
        for _ in range(5):
            refused = subprocess.run([self.programs.distroctl, "run", "show", self.aggregators["tls"].grpc, "--ca", space.folder / "certs/ca.pem",
                                      "--token_file", token], capture_output=True, text=True)
            assert refused.returncode == 3, refused.stderr

    def data_dir(self, name):
        """As the aggregator sees it, on its own file system."""
        return pathlib.Path(f"/proc/{self.aggregators[name].child.pid}/root{self.spaces[name].data_dir}")

    def damage_log(self):
        """One byte of a result, which a new archiver reads."""
        with open(self.data_dir("broken") / "rounds/0000000000.record", "r+b") as record:
            record.seek(40)
            byte = record.read(1)
            record.seek(40)
            record.write(bytes([byte[0] ^ 1]))
        self.archivers["broken"] = self.spaces["broken"].start_archiver(self.aggregators["broken"].grpc)

    def fill_disk(self):
        with open(self.data_dir("disk") / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(1 << 14))
            except OSError:
                pass
