"""A run of synthetic workers against a real aggregator, as bench/aggregator_load and bench/links make it: its model, its
configuration, what the workers' processes saw of its rounds; and the head of the tables that come of it."""
import json
import pathlib
import statistics
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import processes  # noqa: E402

REPORT_BLOCKS = 294177  # of the 1.2 B layout (tests/common/codec/payload_test.cc)
KEPT = 4
CLOCK_TICKS = 100  # a second, in /proc; the kernel's USER_HZ
# Threads that carry 512 workers come late; nobody is given up for that.
PATIENCE = ("--heartbeat_interval", "2s", "--suspect_after", "5m", "--lease", "10m", "--log_level", "warning")


def write_model(folder, blocks):
    """One tensor of zeros [64 * blocks, 1]: each block is one of the grid, with 64 elements that exist. The file is sparse."""
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    size = 64 * 4 * blocks
    header = json.dumps({"w": {"dtype": "F32", "shape": [64 * blocks, 1], "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)
    return folder


class Load:
    """An aggregator with a run for `workers` synthetic workers. `keep`: votes of a block that travel down; 0: all. `recorded`: folder of
    the updates that they upload; None: random ones."""

    def __init__(self, bin_folder, workers, rounds, keep, recorded=None, blocks=REPORT_BLOCKS, segment_blocks=16384, prefix=(),
                 listen="127.0.0.1:0"):
        self.program, self.workers, self.rounds, self.blocks = bin_folder / "aggregator_load", workers, rounds, blocks
        self.updates = ["--recorded", recorded] if recorded else []
        self.segment_blocks = segment_blocks
        self.space = processes.Workspace(processes.programs_in(bin_folder))
        run = {"method": "signs", "start_workers": workers, "min_workers": workers, "rounds": rounds, "warmup_rounds": 0, "kept_per_block": KEPT,
               "segment_blocks": segment_blocks}
        if keep:
            run |= {"download": "top", "kept_votes_per_block": keep}
        try:
            self.aggregator = self.space.start_aggregator(
                "--run", self.space.write_run(**run), "--model", write_model(self.space.folder / "model", blocks), *PATIENCE,
                prefix=prefix, listen=listen)
        except BaseException:
            self.space.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.space.close()

    def start(self, first=0, count=None, address=None, prefix=()):
        """Workers `first` on, in a process of their own."""
        command = [*prefix, self.program, "--aggregator", address or self.aggregator.grpc, "--workers", count or self.workers,
                   "--first", first, "--blocks", self.blocks, *self.updates]
        return self.space.start(f"load-{first}", command)

    def result(self, clients, limit):
        """Waits for the clients' end; the rounds that they saw together."""
        for client in clients:
            if code := client.exit_code(limit):
                raise AssertionError(f"{client.name} ended with {code}: {client.log()}{self.aggregator.log()[-2000:]}")
        return merge([[json.loads(line) for line in client.out_path.read_text().splitlines()] for client in clients])


def merge(seen):
    """Rounds as several processes saw them: [process][round] to [round]."""
    merged = []
    for rounds in zip(*seen, strict=True):
        hashes = {one["hash"] for one in rounds}
        if len(hashes) != 1:
            raise AssertionError(f"round {rounds[0]['round']}: chain hashes {hashes}")
        merged.append({
            "round": rounds[0]["round"], "hash": rounds[0]["hash"], "result_bytes": rounds[0]["result_bytes"],
            "opened": min(one["opened"] for one in rounds), "committed": max(one["committed"] for one in rounds),
            "segments": [(max(sent), max(acknowledged), min(first), max(last)) for sent, acknowledged, first, last in
                         (zip(*segment) for segment in zip(*(one["segments"] for one in rounds)))]})
    return merged


def print_head(header):
    """The head of a table whose rows follow as they are measured."""
    print(header + "\n|" + "---|" * (header.count("|") - 1), flush=True)


def update_bytes(blocks, segment_blocks):
    """Of one worker's upload, K = 4: six bytes a block, 48 a segment (docs/payload_format.md)."""
    return 6 * blocks + 48 * -(-blocks // segment_blocks)


def seconds_a_round(rounds):
    """From the first round's commit on, so that joining and connecting do not count."""
    return (rounds[-1]["committed"] - rounds[0]["committed"]) / (len(rounds) - 1)


def segment_delays(rounds):
    """Of every segment after the first round: seconds from its last upload byte to its first and to its last result byte."""
    segments = [segment for one in rounds[1:] for segment in one["segments"]]
    return [first - sent for sent, _, first, _ in segments], [last - sent for sent, _, _, last in segments]


def early_share(rounds):
    """Of the segments but each round's last one: how many had a result byte at a worker before the last upload was acknowledged."""
    early = total = 0
    for one in rounds[1:]:
        end = max(acknowledged for _, acknowledged, _, _ in one["segments"])
        early += sum(first < end for _, _, first, _ in one["segments"])
        total += len(one["segments"]) - 1
    return early / max(total, 1)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if len(values) > 1 else statistics.mean(values)


def result_latency(aggregator):
    """Mean seconds from a segment's last upload byte to its first result byte, as the aggregator's own histogram has them."""
    name = "distro_aggregator_result_latency_seconds"
    return aggregator.metric(f"{name}_sum") / aggregator.metric(f"{name}_count")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def peak_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")
