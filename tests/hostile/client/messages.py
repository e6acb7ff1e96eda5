"""The messages of proto/distro/v1 and their stubs, compiled into a folder for temporary files at the first import.

    from client.messages import pb, grpc_stubs
    pb.JoinRequest(...)
"""
import atexit
import importlib
import pathlib
import shutil
import sys
import tempfile
import types

import grpc_tools
from grpc_tools import protoc

PROTO = pathlib.Path(__file__).resolve().parents[3] / "proto"
NAMES = ("admin", "aggregator", "error", "link", "round", "run", "session", "snapshot", "store", "telemetry", "update")


def _compile(folder):
    own = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    status = protoc.main(["protoc", f"-I{PROTO}", f"-I{own}", f"--python_out={folder}", f"--grpc_python_out={folder}",
                          *(f"distro/v1/{name}.proto" for name in NAMES)])
    if status != 0:
        raise RuntimeError(f"protoc ended with {status}")


def _load():
    folder = tempfile.mkdtemp(prefix="distro-proto-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _compile(folder)
    sys.path.insert(0, folder)
    messages, stubs = types.SimpleNamespace(), types.SimpleNamespace()
    for name in NAMES:
        module = importlib.import_module(f"distro.v1.{name}_pb2")
        for symbol in (*module.DESCRIPTOR.message_types_by_name, *module.DESCRIPTOR.enum_types_by_name):
            setattr(messages, symbol, getattr(module, symbol))
        for enum in module.DESCRIPTOR.enum_types_by_name.values():
            for value in enum.values_by_name:
                setattr(messages, value, enum.values_by_name[value].number)
        services = importlib.import_module(f"distro.v1.{name}_pb2_grpc")
        for service in module.DESCRIPTOR.services_by_name:
            setattr(stubs, f"{service}Stub", getattr(services, f"{service}Stub"))
    sys.path.remove(folder)
    return messages, stubs


pb, grpc_stubs = _load()
