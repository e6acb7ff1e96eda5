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
    "common/model_config": "common/layout",
    "common/checkpoint": "common/layout common/model_config",
    "kernels": "common/update",
    "kernels/cpu": "kernels",
    "kernels/cuda": "kernels",
    "common/rpc/frames": "common/base proto",  # cutting and checking, without gRPC
    "common/rpc/proto_time": "proto",  # times of messages, without gRPC
    "common/round_log": "common/codec common/run common/rpc/frames proto",
    "kernels/replica": "kernels/cpu common/checkpoint common/round_log",  # the log applied
    # The outside world, wrapped.
    "common/rpc/channel_options": "",  # without gRPC
    "common/rpc/client_flags": "common/rpc/channel_options",
    "common/security": "common/base",  # certificates and tokens, without gRPC
    "common/rpc": "common/base common/rpc/frames common/rpc/proto_time common/rpc/channel_options common/security proto",
    "common/telemetry/duration_histogram": "common/base proto",  # readings in heartbeats, without Prometheus
    "common/telemetry/repair_telemetry": "common/telemetry/duration_histogram",
    "common/telemetry/http_get": "common/base",  # for tools
    "common/telemetry": "common/base proto common/telemetry/repair_telemetry",
    "common/process": "common/base",  # signals
    "common/process/command_line": "common/base",  # absl's flags, for programs
    # The aggregator. Its decisions and its log know nothing of gRPC.
    "server/flags": "server/options common/process/command_line",
    "server/options": "common/run server/connections server/limits",
    "server/limits": "common/base",
    "server/auth/roles": "",
    "server/auth/auth_observer": "",
    "server/auth/file_watch": "common/base",
    "server/auth/tokens_file": "common/base server/auth/roles",
    "server/auth/token_store": "server/auth/auth_observer server/auth/file_watch server/auth/tokens_file",
    "server/connections": "common/base server/limits",  # below gRPC, which gets its sockets from here
    "server/auth": "common/rpc server/auth/token_store server/connections",
    "server/log": "kernels/replica",
    "server/session": "common/run common/telemetry/repair_telemetry",
    "server/subscription": "common/round_log common/rpc/proto_time server/log",
    "server/round": "common/round_log common/rpc/proto_time server/log server/session server/subscription",
    "server/stream_metrics": "common/telemetry server/limits",
    "server/connection_metrics": "common/telemetry server/connections",
    "server/worker_metrics": "common/telemetry server/session",
    "server/status": "common/telemetry server/log server/session server/round",
    "server/service": "common/rpc server/auth server/connections server/limits server/log server/session server/round server/service/link_call server/service/upload_call",
    "server/service/link_call": "proto server/limits",  # a measurement, without gRPC
    "server/service/upload_call": "server/limits server/round server/service/transfer_observer",  # an upload, without gRPC
    "server/service/transfer_observer": "",
    "server/service/call_observer": "",
    "server/call_metrics": "proto common/telemetry server/service/call_observer",
    "server/metrics": "common/telemetry server/auth/auth_observer server/round server/service",  # observes them; they do not know it
    "server/grpc_log": "",
    "server/grpc_endpoint": "server/auth server/connections server/options server/service",
    "server": "server/grpc_endpoint server/grpc_log server/auth server/call_metrics server/connection_metrics server/connections server/flags server/options server/metrics server/service server/status server/stream_metrics server/worker_metrics",
    # The worker. Torch is in the model, the sharding and the training loop only.
    "worker/flags": "common/process/command_line common/rpc/client_flags worker/options worker/fingerprint_command worker/generate_command worker/text_floor_command",
    "worker/options": "common/run common/rpc/channel_options worker/data worker/node/node_options",
    "worker/data": "common/run",
    "worker/exchange": "kernels/replica common/rpc common/telemetry/duration_histogram",
    "worker/optimizer": "kernels common/round_log worker/fsdp/shard_plan",
    "worker/state": "worker/optimizer",
    "worker/model": "common/model_config common/checkpoint",
    "worker/model/llama_memory": "common/model_config",  # these two without Torch, for plans
    "worker/model/llama_tensors": "common/model_config",
    "worker/fsdp": "worker/model worker/fsdp/shard_plan",
    "worker/fsdp/shard_plan": "common/layout",  # without Torch, for the optimizer too
    "worker/fsdp/memory_counter": "",
    "worker/fsdp/memory_request": "common/model_config worker/fsdp/fsdp_options",
    "worker/fsdp/step_timeline": "worker/fsdp/memory_request worker/fsdp/shard_plan worker/model/llama_memory",
    "worker/fsdp/memory_plan": "worker/fsdp/memory_counter worker/fsdp/step_timeline",  # without Torch, for distroctl too
    "worker/fsdp/fsdp_options": "common/base",
    "worker/node": "kernels/cuda kernels/replica worker/fsdp worker/optimizer worker/state worker/node/node_options",
    "worker/node/node_options": "worker/fsdp/fsdp_options",
    "worker/train": "worker/data worker/exchange worker/node",
    "worker/gpu_readings": "",  # of the driver, loaded at run time
    "worker/telemetry": "worker/gpu_readings worker/train",  # observes it
    "worker/metrics": "common/telemetry worker/telemetry",
    "worker/generate_command": "worker/model",
    "worker/text_floor_command": "worker/data",
    "worker/fingerprint_command": "worker/data",
    "worker": "common/process worker/flags worker/options worker/metrics worker/train",
    "tools/distroctl": "kernels/replica common/rpc common/rpc/client_flags common/security common/telemetry/http_get server/auth/tokens_file server/log worker/fsdp/memory_plan worker/model/llama_tensors",  # `plan` says what a worker checks at its start
    "tools/archiver": "common/process common/process/command_line kernels/replica common/rpc common/rpc/client_flags common/telemetry",
    # A test folder may also use whatever the folder it mirrors may use, and tests/testing.
    "tests/testing": "kernels/replica",
    "tests/testing/faulty_disk": "server/log",
    "tests/testing/metrics_doc": "common/base",
    "tests/testing/loopback": "",
    "tests/testing/link_sequence": "server/limits server/service/link_call",
    "tests/testing/rpc_sequence": "server/round server/service/link_call server/service/upload_call tests/server/round",
    "tests/testing/scripted_update": "worker/exchange",
    "tests/testing/sharded_optimizer": "worker/optimizer",
    "tests/testing/training": "worker/train",
    "tests/common": "",
    "tests/common/codec": "bench/wire",  # votes that have a seed, and what they would take at best
    "tests/kernels": "kernels/cuda",
    "tests/server": "",
    "tests/server/round": "",
    "tests/server/subscription": "tests/server/round",
    "tests/server/service": "common/telemetry/http_get server tests/server/round",  # the whole aggregator in the test's process
    "tests/worker": "",
    "tests/worker/model": "",
    "tests/worker/fsdp": "tests/worker/model",  # a small model
    "tests/worker/node": "tests/worker/model tests/worker/fsdp tests/kernels",  # emulated GPUs as a node's devices
    "tests/tools": "",
    "tests/tools/distroctl/aggregator_commands_test": "tests/server/service",
    "tests/tools/distroctl/operate_test": "tests/server/service",  # the commands against a whole aggregator
    "tests/tools/archiver": "server tests/server/service",  # against a whole aggregator in the test's process
    "tests/integration": "server worker tools/distroctl tools/archiver",
    "tests/compatibility": "worker/model",
    "tests/fuzz": "tests/testing/rpc_sequence common/rpc common/round_log common/telemetry server/log server/auth/tokens_file worker/data worker/state tools/archiver",
    "bench": "bench/wire server worker",
    "bench/convergence": "bench/wire worker",
    "bench/wire": "common/codec",
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
        seen_in="worker/model worker/fsdp worker/node worker/train worker/metrics worker/generate_command worker bench bench/convergence "
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
        named_in="common/rpc server/auth server/service server/grpc_endpoint server/grpc_log worker/exchange tools/distroctl tools/archiver "
        "tests/integration bench",
        seen_in="proto server worker/train worker tests/testing/training",
    ),
    "prometheus": Outside(
        r"(^|/)prometheus/",
        r"^libprometheus",
        r"^_ZNK?10prometheus",
        named_in="common/telemetry server/call_metrics server/connection_metrics server/metrics server/stream_metrics server/worker_metrics worker/metrics tests/testing/metrics_doc",
        seen_in="server/status server worker tests/server/service tests/tools/distroctl tools/archiver tests/integration bench",
    ),
    "boost": Outside(  # Asio and Beast, headers only
        r"(^|/)boost/",
        r"^libboost_",
        None,
        named_in="common/telemetry common/telemetry/http_get",
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
