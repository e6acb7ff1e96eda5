"""Who may use whom: the layers of the project and its doors to the outside. Read this as documentation.

structure_test.py holds every compiled file, every header and every linked program to these tables; self_test.py shows
that each kind of violation is found. Who needs a new edge adds it here, and says why in the change.
"""

# Unit -> the units it may include directly. What those may use, it may use too. A unit is a folder, or a file without
# its extension ("server/metrics" is server/metrics.h and .cc); the longest name that fits a path counts. "proto" is the
# code generated from proto/.
USES = {
    # Pure data and arithmetic. No sockets, no threads but those that share one call's work (common/base/parallel.h).
    "proto": "",
    "common/base": "",
    "common/layout": "common/base",
    "common/update": "common/layout",
    "common/codec": "common/update",
    "common/run": "common/layout proto",
    "common/model": "common/layout",
    "common/checkpoint": "common/layout",
    "kernels": "common/update",
    "kernels/cpu": "kernels",
    "kernels/cuda": "kernels",
    "common/rpc/frames": "common/base proto",  # cutting and checking, without gRPC
    "common/rpc/proto_time": "proto",  # times of messages, without gRPC
    "common/round_log": "common/codec common/run common/rpc/frames proto",
    "common/round": "common/round_log",
    "kernels/replica": "kernels/cpu common/checkpoint common/round_log",  # the log applied
    # The outside world, wrapped.
    "common/security": "common/base",  # certificates and tokens, without gRPC
    "common/rpc": "common/base common/rpc/frames common/rpc/proto_time proto",
    "common/client/channel_options": "",  # without gRPC
    "common/client/client_flags": "common/client/channel_options common/process",
    "common/client": "common/client/channel_options common/rpc common/security",
    "common/telemetry/worker_readings": "common/base proto",  # in heartbeats, without Prometheus
    "common/telemetry/http_get": "common/base",  # for tools
    "common/telemetry": "common/base proto common/telemetry/worker_readings",
    "common/process": "common/base",  # signals and the command line
    # A node's part in a run: the edge to the network, without it; and what stands behind that edge.
    "common/exchange": "common/round_log common/telemetry/worker_readings",
    "common/client/follow": "common/client common/exchange",
    "common/client/member": "common/client/follow",
    "common/simulation": "common/checkpoint common/exchange common/round",
    # The aggregator. Its decisions and its log know nothing of gRPC.
    "server/flags": "server/options common/process",
    "server/options": "common/run server/connections server/limits",
    "server/limits": "common/base",
    "server/auth/roles": "",
    "server/auth/file_watch": "common/base",
    "server/auth/tokens_file": "common/base server/auth/roles",
    "server/auth/token_store": "server/auth/file_watch server/auth/tokens_file",
    "server/connections": "common/base server/limits",  # below gRPC, which gets its sockets from here
    "server/auth": "common/rpc common/security server/auth/token_store server/connections",
    "server/log": "kernels/replica",
    "server/session": "common/run common/telemetry/worker_readings",
    "server/subscription": "common/round_log common/rpc/proto_time server/log",
    "server/round": "common/round common/rpc/proto_time server/log server/session server/subscription",
    "server/part_metrics": "common/telemetry server/connections server/limits server/session",
    "server/status": "common/telemetry server/log server/session server/round",
    "server/service": "common/rpc server/auth server/connections server/limits server/log server/session server/round server/service/link_call server/service/upload_call",
    "server/service/link_call": "proto server/limits",  # a measurement, without gRPC
    "server/service/upload_call": "server/limits server/round server/service/observers",  # an upload, without gRPC
    "server/service/observers": "",
    "server/call_metrics": "proto common/telemetry server/service/observers",
    "server/metrics": "common/telemetry server/auth/token_store server/round server/service",  # observes them; they do not know it
    "server/grpc_endpoint": "server/auth server/connections server/options server/service",
    "server": "server/grpc_endpoint server/auth server/call_metrics server/connections server/flags server/options server/metrics server/service server/status server/part_metrics",
    # The worker. Torch is in the model, the sharding and the training loop only.
    "worker/exit_code": "common/base",
    "worker/flags": "worker/commands",
    "worker/options": "common/run common/client/channel_options worker/data worker/node/node_options",
    "worker/data": "common/run",
    "worker/plan": "common/model",  # without Torch, for the optimizer and distroctl too
    "worker/optimizer": "kernels kernels/cpu common/round_log worker/plan",  # deltas have operations on the CPU only
    "worker/state": "worker/optimizer",
    "worker/model": "common/model",
    "worker/fsdp": "worker/model worker/plan",
    "worker/node": "kernels/cuda kernels/replica worker/fsdp worker/optimizer worker/state worker/node/node_options",
    "worker/node/node_options": "worker/plan",
    "worker/train": "common/exchange worker/data worker/node",
    "worker/gpu_readings": "",  # of the driver, loaded at run time
    "worker/metrics": "common/telemetry worker/gpu_readings worker/train",  # observes it
    "worker/commands": "common/client common/client/client_flags common/process common/checkpoint worker/data worker/exit_code worker/model worker/options",
    "worker": "common/client/member common/process worker/exit_code worker/flags worker/metrics worker/train",
    "tools/distroctl": "common/client common/client/client_flags common/process kernels/replica common/security common/telemetry/http_get server/auth/tokens_file server/log worker/plan",  # `plan` says what a worker checks at its start
    "tools/archiver": "common/client/client_flags common/client/follow common/process kernels/replica common/telemetry",
    # A test folder may also use whatever the folder it mirrors may use, and tests/testing.
    "tests/testing": "common/process kernels/replica",
    "tests/testing/faulty_disk": "server/log",
    "tests/testing/metrics_doc": "common/base",
    "tests/testing/loopback": "",
    "tests/testing/plain_updates": "common/codec",
    "tests/testing/link_sequence": "server/limits server/service/link_call",
    "tests/testing/rpc_sequence": "server/round server/service/link_call server/service/upload_call tests/server/round",
    "tests/testing/scripted_update": "common/exchange",
    "tests/testing/sharded_optimizer": "worker/optimizer",
    "tests/testing/training": "worker/train",
    "tests/common": "",
    "tests/common/codec": "bench/wire",  # votes that have a seed, and what they would take at best
    "tests/common/client": "",
    "tests/common/client/follow": "tests/common/client",
    "tests/common/client/member": "tests/common/client",
    "tests/kernels": "kernels/cuda",
    "tests/server": "",
    "tests/server/auth": "common/client",  # handshakes with what clients do
    "tests/server/round": "",
    "tests/server/subscription": "tests/server/round",
    "tests/server/service": "common/client common/telemetry/http_get server tests/server/round",  # the whole aggregator in the test's process
    "tests/worker": "tests/common/client",  # an aggregator that refuses on demand
    "tests/worker/model": "",
    "tests/worker/train": "common/simulation",
    "tests/worker/fsdp": "tests/worker/model",  # a small model
    "tests/worker/node": "tests/worker/model tests/worker/fsdp tests/kernels",  # emulated GPUs as a node's devices
    "tests/tools": "",
    "tests/tools/distroctl": "tests/server/service",  # the commands against a whole aggregator
    "tests/tools/archiver": "server tests/common/client/follow tests/server/service",  # against a whole aggregator in the test's process, and one that plays a script
    "tests/integration": "common/simulation server worker tools/distroctl tools/archiver",
    "tests/compatibility": "common/process worker/model",
    "tests/fuzz": "tests/testing/plain_updates tests/testing/rpc_sequence common/rpc common/round_log common/telemetry server/log server/auth/tokens_file worker/data worker/state tools/archiver",
    "bench": "bench/wire common/simulation server worker",
    "bench/convergence": "bench/wire common/simulation worker",
    "bench/wire": "common/codec common/process",
    "tests/bench": "bench/convergence bench/wire worker",
    "bench/gpu": "kernels/cuda worker/fsdp common/checkpoint",
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
    ("kernels/cpu", "proto"),
    ("kernels/cuda", "proto"),
    ("bench", "tests"),
]


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
        r"(^|/)(torch|torch-include|ATen|c10|caffe2)/",
        r"^lib(torch|c10)",
        r"^_ZN?K?(2at|3c10|5torch)",
        named_in="worker/model/torch worker/fsdp/cuda_torch",
        seen_in="worker/model worker/fsdp worker/node worker/train worker/metrics worker/commands worker bench bench/convergence "
        "tests/bench tests/testing/training tests/compatibility tests/integration",
    ),
    "cuda": Outside(
        r"(^|/)((?<!kernels/cuda/)cuda[^/]*\.h|nccl\.h|nvtx3/.*)$",
        r"^lib(cuda|nccl|cupti)",
        r"^(cuda[A-Z]|nccl[A-Z])",
        named_in="kernels/cuda worker/fsdp worker/node bench/gpu",
        seen_in="worker/train worker bench tests/kernels",  # the test programs of kernels/cuda link its runtime
    ),
    "grpc": Outside(
        r"(^|/)grpc(pp)?/|\.grpc\.pb\.h$",
        r"^lib(grpc|gpr)",
        r"^(_ZNK?4grpc|grpc_|gpr_)",
        named_in="common/rpc common/client common/client/follow common/client/member server/auth server/service server/grpc_endpoint tools/distroctl tools/archiver "
        "tests/integration bench",
        seen_in="proto server worker/train worker tests/testing/training",
    ),
    "prometheus": Outside(
        r"(^|/)prometheus/",
        r"^libprometheus",
        r"^_ZNK?10prometheus",
        named_in="common/telemetry server/call_metrics server/metrics server/part_metrics worker/metrics tests/testing/metrics_doc",
        seen_in="server/status server worker tests/server/service tests/tools/distroctl tools/archiver tests/integration bench",
    ),
    "boost": Outside(  # Asio and Beast, headers only
        r"(^|/)boost/",
        r"^libboost_",
        None,
        named_in="common/telemetry common/telemetry/http_get",
        seen_in="",
    ),
    "cli11": Outside(  # headers only, slow to compile
        r"(^|/)CLI/",
        r"^libCLI11",
        None,
        named_in="common/process",
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
