"""A run of synthetic workers against a real aggregator, for bench/aggregator_load and bench/links: its model, its
configuration, the rounds as the workers' processes saw them, and the headings of the tables."""
import json
import math
import pathlib
import statistics
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import processes  # noqa: E402

# The keys of run.json common to both methods.
COMMON = {key: value for key, value in processes.RUN.items() if not any(key in keys for keys in processes.METHODS.values())}
REPORT_BLOCKS = 294177  # of the 1.2 B layout (tests/common/method/signs/payload_test.cc)
# No cap of a round is below what random deltas need (bench/wire/random_deltas.h), so that none is clamped.
RATES = {"signs": {}, "deltas": {"peak_learning_rate": 1e-3, "min_learning_rate": 1e-3}}
MOST_GATES = 2**20 // 64  # blocks of a matrix of the deltas' model (common/model/decoder)
CLOCK_TICKS = 100  # a second, in /proc; the kernel's USER_HZ
# With 512 workers some threads run late: a long lease keeps their sessions.
PATIENCE = ("--heartbeat_interval", "2s", "--suspect_after", "5m", "--lease", "10m", "--log_level", "warning")


def write_model(folder, blocks, method="signs"):
    """A model of `blocks` blocks with few elements, all zero. Signs: one tensor [64 * blocks, 1]. Deltas: a Llama of width 2,
    because the aggregator must know which tensors Muon steps. As in the report's model, nearly all blocks are of wide inner matrices."""
    folder.mkdir()
    if method == "signs":
        write_zeros(folder, {}, {"w": [64 * blocks, 1]})
    else:
        write_zeros(folder, *narrow_llama(blocks))
    return folder


def narrow_llama(blocks):
    """config.json of a Llama of as many blocks, and its tensors: 3 outside the layers, and 6 in each beside its 3 wide matrices."""
    layers = next((n for n in range(1, 100) if (blocks - 3) % (3 * n) == 0 and 0 < (blocks - 3) // (3 * n) - 2 <= MOST_GATES), None)
    if layers is None:
        raise ValueError(f"no narrow Llama has {blocks} blocks: take 3 + 3 * layers * (2 + blocks of a wide matrix, up to {MOST_GATES})")
    wide = 64 * ((blocks - 3) // (3 * layers) - 2)
    tensors = {"model.embed_tokens.weight": [2, 2], "model.norm.weight": [2], "lm_head.weight": [2, 2]}
    for layer in range(layers):
        shapes = {"input_layernorm": [2], "post_attention_layernorm": [2], "mlp.gate_proj": [wide, 2], "mlp.up_proj": [wide, 2],
                  "mlp.down_proj": [2, wide], **{f"self_attn.{name}_proj": [2, 2] for name in "qkvo"}}
        tensors |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in shapes.items()}
    return {"model_type": "llama", "hidden_size": 2, "intermediate_size": wide, "num_hidden_layers": layers, "num_attention_heads": 1,
            "vocab_size": 2, "max_position_embeddings": 2048}, tensors


def write_zeros(folder, config, tensors):
    """A checkpoint; the file of its tensors is sparse."""
    (folder / "config.json").write_text(json.dumps(config))
    header, size = {}, 0
    for name, shape in tensors.items():
        end = size + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [size, end]}
        size = end
    header = json.dumps(header).encode()
    header += b" " * (-len(header) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)


class Load:
    """An aggregator with a run for `workers` synthetic workers. `keep`: votes of a block that travel down; 0: all. `recorded`: folder of
    the updates that they upload; None: random ones. `flags`: of the aggregator. `other`: keys of run.json."""

    def __init__(self, bin_folder, workers, rounds, keep, recorded=None, method="signs", blocks=REPORT_BLOCKS, segment_blocks=16384,
                 prefix=(), listen="127.0.0.1:0", flags=(), **other):
        self.program, self.workers, self.rounds, self.blocks = bin_folder / "aggregator_load", workers, rounds, blocks
        self.updates = ["--recorded", recorded] if recorded else []
        self.space = processes.Workspace(processes.programs_in(bin_folder))
        run = {**COMMON, "method": method, "start_workers": workers, "min_workers": workers, "rounds": rounds, "warmup_rounds": 0,
               "segment_blocks": segment_blocks, **RATES[method]}
        if method == "signs":
            run["workers"] = "python"  # a model that distro-worker does not support
        if keep:
            run |= {"download": "top", "kept_votes_per_block": keep}
        run_file = self.space.folder / "run.json"
        run_file.write_text(json.dumps(run | other))
        try:
            self.aggregator = self.space.start_aggregator(
                "--run", run_file, "--model", write_model(self.space.folder / "model", blocks, method), *PATIENCE, *flags,
                prefix=prefix, listen=listen)
        except BaseException:
            self.space.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.space.close()

    def start(self, first=0, count=None, address=None, prefix=()):
        """Starts workers from number `first` on, in their own process."""
        command = [*prefix, self.program, "--aggregator", address or self.aggregator.grpc, "--workers", count or self.workers,
                   "--first", first, "--blocks", self.blocks, *self.updates]
        return self.space.start(f"load-{first}", command)

    def measure(self, start, limit):
        """The rounds of the clients that `start` starts, and the aggregator's processor seconds for each."""
        pid = self.aggregator.child.pid
        before = cpu_seconds(pid)
        seen = self.result(start(), limit)
        return seen, (cpu_seconds(pid) - before) / len(seen)

    def result(self, clients, limit):
        """Waits for the clients to end. Returns their rounds, merged."""
        for client in clients:
            if code := client.exit_code(limit):
                raise AssertionError(f"{client.name} ended with {code}: {client.log()}{self.aggregator.log()[-2000:]}")
        return merge([[json.loads(line) for line in client.out_path.read_text().splitlines()] for client in clients])


def merge(seen):
    """Merges the rounds that several processes saw: [process][round] to [round]."""
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
    """Prints the headings of a table; its rows follow as they are measured."""
    print(header + "\n|" + "---|" * (header.count("|") - 1), flush=True)


def update_bytes(aggregator, workers, rounds):
    """Mean bytes of one worker's upload, as the aggregator counted them."""
    return round(aggregator.metric("distro_aggregator_received_bytes_total", kind="update") / (workers * rounds))


def seconds_a_round(rounds):
    """Seconds from the first round's commit, so that joining and connecting do not count."""
    return (rounds[-1]["committed"] - rounds[0]["committed"]) / (len(rounds) - 1)


def segment_delays(rounds):
    """For every segment after the first round: seconds from its last upload byte to its first and to its last result byte."""
    segments = [segment for one in rounds[1:] for segment in one["segments"]]
    return [first - sent for sent, _, first, _ in segments], [last - sent for sent, _, _, last in segments]


def early_share(rounds):
    """Share of segments, without each round's last, that had a result byte at a worker before the last upload was acknowledged."""
    early = total = 0
    for one in rounds[1:]:
        end = max(acknowledged for _, acknowledged, _, _ in one["segments"])
        early += sum(first < end for _, _, first, _ in one["segments"])
        total += len(one["segments"]) - 1
    return early / max(total, 1)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if len(values) > 1 else statistics.mean(values)


def result_latency(aggregator):
    """Mean seconds from a segment's last upload byte to its first result byte, from the aggregator's own histogram."""
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
