"""Who may use whom: the layers of the project and its doors to the outside. Read this as documentation.

structure_test.py holds every compiled file, every header and every linked program to these tables; self_test.py shows
that each kind of violation is found. Who needs a new edge adds it here, and says why in the change.
"""

# Unit -> the units it may include directly. What those may use, it may use too. A unit is a folder; the longest name
# that fits a path counts. "proto" is the code generated from proto/.
USES = {
    # Pure data and arithmetic. No sockets, no threads but those that share one call's work (common/base/parallel.h).
    "proto": "",
    "common/base": "",
    "common/model/layout": "common/base",
    "common/model": "common/model/layout",
    # A method is a folder; common/method has the table of them.
    "common/method/base": "common/model/layout proto",  # the interface, and what methods share
    "common/method/codec": "common/model/layout",
    "common/method/deltas": "common/method/base common/method/codec common/model",
    "common/method/signs": "common/method/base common/method/codec",
    "common/method": "common/method/deltas common/method/signs",
    "common/run": "common/method",
    "common/model/checkpoint": "common/model/layout proto",  # how a run lists what travels with its checkpoints
    "kernels": "common/method/deltas common/method/signs",  # records and their arithmetic
    "kernels/cpu": "kernels",
    "kernels/cuda": "kernels",
    "common/net/wire": "common/base proto",  # what messages carry and how they are cut, without gRPC
    "common/run/record": "common/method common/net/wire",
    "common/run/round": "common/run/record common/run",
    "kernels/replica": "kernels/cpu common/model/checkpoint common/run/record",  # the log applied
    # The outside world, wrapped.
    "common/net/security": "common/base",  # certificates and tokens, without gRPC
    "common/net/rpc": "common/net/wire",
    "common/base/process": "common/base",  # signals and the command line
    "common/client/options": "common/base/process common/net/security",  # which aggregator, without gRPC; an invite holds a token
    "common/client/probe": "common/client/options common/net/dns",  # what is on the way, without gRPC
    "common/client": "common/client/probe common/net/rpc",
    "common/net/dns": "common/base",  # addresses of a host
    "common/net/http": "common/net/dns",  # without Prometheus
    "common/net/s3": "common/net/http",  # objects of a bucket
    "common/net/telemetry": "common/net/http common/net/wire",
    # A node's part in a run: the edge to the network, without it; and what stands behind that edge.
    "common/feed": "common/run/record",  # both ends of the stream of rounds, without gRPC
    "common/client/exchange": "common/feed",
    "common/client/follow": "common/client common/client/exchange common/net/http",  # results from mirrors
    "common/client/member": "common/client/follow",
    # The aggregator. Its decisions and its log know nothing of gRPC.
    "server/limits": "common/base",
    "server/connections": "server/limits",  # below gRPC, which gets its sockets from here
    "server/options": "common/base/process common/net/http common/run server/connections",
    "server/auth/tokens": "common/base",  # without gRPC, for distroctl too
    "server/auth": "common/net/rpc common/net/security server/connections",
    "server/log": "kernels/replica common/feed common/run/round",  # what a run is, its method too
    "server/log/bucket": "server/log common/net/s3",  # the same files as objects
    "server/session": "common/run common/net/wire",
    "server/round": "server/log server/session",
    "server/call": "server/limits server/round",  # what a call does, without gRPC
    "server/service": "server/auth server/call server/options",
    "server/metrics": "common/net/telemetry server/service",  # observes it; it does not know it
    "server/objects": "common/net/http server/call",  # results over HTTP, for mirrors
    "server/status": "common/net/telemetry server/round",
    "server/standby": "server/log/bucket server/options",  # waits until no other process serves the run
    "server": "server/log/bucket server/metrics server/objects server/standby server/status",
    # The worker. Torch is in the model, the sharding and the training loop only.
    "worker/data": "common/base/process common/run",  # a tokenizer is a command
    "worker/plan": "common/model",  # without Torch, for the optimizer and distroctl too
    "worker/rules": "kernels kernels/cpu common/run/record worker/plan",  # and what it computes with on the host
    "worker/state": "worker/rules",
    "worker/torch": "",
    "worker/model": "common/model worker/torch",
    "worker/fsdp": "worker/model worker/plan",
    "worker/node": "common/base/process kernels/cuda kernels/replica worker/fsdp worker/rules worker/state",
    "worker/train": "common/client/exchange worker/data worker/node",
    "worker/metrics": "common/net/telemetry worker/train",  # observes it; it does not know it
    "worker/python": "common/client/member common/run/round worker/metrics worker/train",  # a worker inside a Python program; distro-worker does not know it
    "worker": "common/client/member worker/metrics",
    "tools/distroctl": "common/client common/net/http kernels/replica server/auth/tokens server/log/bucket tools/archiver worker/rules",  # `plan` says what a worker checks at its start, `run restore` reads an archive
    "tools/archiver": "common/client/follow common/model common/net/telemetry common/run kernels/replica",
    # A test folder may also use whatever the folder it mirrors may use, and tests/testing.
    "tests/testing": "common/base/process common/net/s3 common/run kernels/replica",
    "tests/testing/server": "server/log",
    "tests/testing/worker": "worker/train",
    "tests/common": "",
    "tests/common/method": "bench/wire",  # votes that have a seed, and what they would take at best
    "tests/common/run/round": "bench/wire",
    "tests/common/client": "",
    "tests/common/client/follow": "tests/common/client",
    "tests/common/client/member": "tests/common/client",
    "tests/kernels": "kernels/cuda",
    "tests/server": "tests/server/service",
    "tests/server/auth": "common/client tests/server/auth/tokens",  # handshakes with what clients do
    "tests/common/net/http": "common/net/security",  # a server whose certificate is out of date
    "tests/common/net/s3": "tests/common/net/http",  # a server that plays a script
    "tests/server/auth/tokens": "common/net/security",
    "tests/server/log": "tests/testing/server",
    "tests/server/round": "tests/testing/server",
    "tests/server/call": "tests/server/round",
    "tests/common/feed": "tests/server/log tests/server/round",
    "tests/server/service": "common/client common/net/http server tests/server/round",  # the whole aggregator in the test's process
    "tests/server/metrics": "tests/server/service",
    "tests/worker": "tests/common/client tests/testing/worker",  # an aggregator that refuses on demand
    "tests/worker/model": "",
    "tests/worker/metrics": "tests/testing/worker",
    "tests/worker/rules": "tests/testing/worker",
    "tests/worker/state": "tests/testing/worker",
    "tests/worker/train": "bench/local tests/testing/worker",
    "tests/worker/fsdp": "tests/worker/model",  # a small model
    "tests/worker/python": "tests/testing/worker tests/worker/fsdp",  # the model of GPUs
    "tests/worker/node": "tests/worker/model tests/worker/fsdp tests/kernels",  # emulated GPUs as a node's devices
    "tests/tools": "",
    "tests/tools/distroctl": "tests/server/service tests/tools/archiver",  # the commands against a whole aggregator, and an archive
    "tests/tools/archiver": "tests/common/client/follow tests/server/service",  # against a whole aggregator in the test's process, and one that plays a script
    "tests/integration": "server bench/local worker tools/distroctl tools/archiver tests/testing/server tests/testing/worker",
    "tests/compatibility": "common/base/process worker/model",
    "tests/fuzz": "tests/server/call tests/testing/worker tools/archiver server/auth/tokens common/net/s3",
    "bench": "bench/wire server worker",
    "bench/convergence": "bench/wire bench/local worker",
    "bench/local": "common/client/exchange server/round",  # a run inside one process
    "bench/wire": "common/method common/base/process",
    "tests/bench/local": "tests/bench",
    "tests/bench": "bench/convergence bench/wire worker tests/testing/worker",
    "bench/gpu": "kernels/cuda worker/fsdp common/model/checkpoint",
}

# Never, whatever USES says (self_test.py compares the two).
NEVER = [
    ("server", "worker"),
    ("worker", "server"),
    ("common", "kernels"),
    ("common", "server"),
    ("common", "worker"),
    ("common", "tools"),
    ("kernels", "server"),
    ("kernels", "worker"),
    ("bench", "tests"),
]

# What no file of a folder sees, through any header, though USES lets the folders of those headers be used: (folder, but for
# this one inside it, what). A method's records and its messages are in one folder, and kernels need the records only.
UNSEEN = [
    ("kernels", "kernels/replica", "proto"),
]

# A method is known by its name in these places only (METHOD_..., has_deltas()); all others ask common/method/methods.h, or
# the worker's rule (worker/rules/update_rule.h).
NAMES_METHODS = [
    "common/method",
    "worker/rules",
    "kernels/replica/round_update.cc",  # applies the results of each
    "tools/distroctl/plan.cc",  # estimates of each
    "tools/distroctl/plan_report.h",
]

# Files are opened by common/base/file_calls.h, which neither waits for a FIFO nor writes through a link. The sources that
# open something themselves, and what; tests and benchmarks may.
OPENERS = {
    "common/base/file_calls.cc": "that place",
    "common/base/process/host_memory.cc": "/proc and /sys",
    "common/base/process/prepare_process.cc": "/dev/null",
    "common/base/process/shell_command.cc": "pipes",
    "server/connections/acceptor.cc": "/dev/null",
    "server/connections/socket.cc": "sockets",
}

# What the name of a test does not begin with: it is a verb phrase.
NO_VERBS = ["A", "An", "The", "What", "Who", "It", "Its", "Every", "Each", "Nobody", "Nothing"]

# A unit's own files may use the folders inside it, but for these: an interface does not know its implementations.
NOT_INSIDE = {
    "kernels": "kernels/cpu kernels/cuda kernels/replica",
}


class Outside:
    """A library that stands behind an edge.

    includes   pattern of its headers, both as written in an #include and as a path in a dependency file
    libraries  pattern of its shared libraries
    symbols    pattern of its mangled symbols, None where a header check is enough
    named_in   units whose files may name its headers
    seen_in    further units into which it may come through other headers, or by linking
    """

    def __init__(self, includes, libraries, symbols, named_in, seen_in):
        self.includes = includes
        self.libraries = libraries
        self.symbols = symbols
        self.named_in = named_in.split()
        self.seen_in = self.named_in + seen_in.split()


OUTSIDE = {
    "torch": Outside(
        r"(^|/)((?<!worker/)torch|torch-include|ATen|c10|caffe2)/",
        r"^lib(torch|c10)",
        r"^_ZN?K?(2at|3c10|5torch)",
        named_in="worker/torch",
        seen_in="worker/model worker/fsdp worker/node worker/train worker/metrics worker/python worker bench bench/convergence tests/bench "
        "tests/testing/worker tests/compatibility tests/integration",
    ),
    "cuda": Outside(
        r"(^|/)((?<!kernels/cuda/)(?<!kernels/emulation/)(?<!predef/language/)cuda[^/]*\.h|nccl\.h|nvtx3/.*)$",
        r"^lib(cuda|nccl|cupti)",
        r"^(cuda[A-Z]|nccl[A-Z])",
        named_in="kernels/cuda worker/torch worker/fsdp worker/node bench/gpu",
        seen_in="worker/train worker bench tests/kernels",  # the test programs of kernels/cuda link its runtime
    ),
    "grpc": Outside(
        r"(^|/)grpc(pp)?/|\.grpc\.pb\.h$",
        r"^lib(grpc|gpr)",
        r"^(_ZNK?4grpc|grpc_|gpr_)",
        named_in="common/net/rpc common/client common/client/follow common/client/member server/auth server/service tools/distroctl tools/archiver "
        "tests/integration bench",
        seen_in="proto server/metrics server worker/train worker/python worker tests/testing/worker",
    ),
    "prometheus": Outside(
        r"(^|/)prometheus/",
        r"^libprometheus",
        r"^_ZNK?10prometheus",
        named_in="common/net/telemetry server/metrics worker/metrics tests/testing",
        seen_in="server/status server worker tests/server/service tests/tools/distroctl tools/archiver tests/integration bench",
    ),
    "boost": Outside(  # Asio and Beast, headers only
        r"(^|/)boost/",
        r"^libboost_",
        None,
        named_in="common/net/http common/net/s3 tests/testing",
        seen_in="",
    ),
    "cli11": Outside(  # headers only, slow to compile
        r"(^|/)CLI/",
        r"^libCLI11",
        None,
        named_in="common/base/process",
        seen_in="",
    ),
    "googletest": Outside(
        r"(^|/)(gtest|gmock)/",
        r"^lib(gtest|gmock)",
        None,
        named_in="tests/testing tests/common tests/kernels tests/server tests/worker tests/tools tests/bench tests/integration",
        seen_in="",
    ),
}
