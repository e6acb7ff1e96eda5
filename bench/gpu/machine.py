#!/usr/bin/env python3
"""What a machine with a GPU is and has, for first_day. Prints one line of JSON.

    machine.py

Exit status 3: no GPU.
"""
import json
import os
import platform
import re
import shutil
import subprocess
import sys

# Names of nvidia-smi's fields, and ours.
FIELDS = {"name": "gpu", "memory.total": "memory_mib", "driver_version": "driver", "compute_cap": "capability", "clocks.sm": "sm_mhz",
          "clocks.mem": "memory_mhz", "clocks.max.sm": "most_sm_mhz", "clocks.max.mem": "most_memory_mhz", "power.limit": "power_limit_w",
          "pcie.link.gen.max": "pcie_generation", "pcie.link.width.max": "pcie_lanes", "ecc.mode.current": "ecc", "mig.mode.current": "mig"}


def ask_nvidia_smi(fields):
    """A dictionary for each GPU; none without a driver."""
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode:
        return []
    return [dict(zip(fields, re.split(r",\s*", line.strip()))) for line in done.stdout.splitlines() if line.strip()]


def processor():
    with open("/proc/cpuinfo") as file:
        return re.search(r"model name\s*: (.*)", file.read()).group(1)


def hardware():
    """What results of one machine have in common; None without a GPU."""
    gpus = ask_nvidia_smi(["name", "memory.total", "driver_version"])
    if not gpus:
        return None
    return {"gpu": gpus[0]["name"], "gpus": len(gpus), "memory_mib": int(gpus[0]["memory.total"]), "driver": gpus[0]["driver_version"],
            "cpu": processor(), "cores": os.cpu_count()}


def tool(name):
    """The path of a tool of the CUDA toolkit; None where there is none."""
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def software():
    import torch
    found = {"python": platform.python_version(), "pytorch": torch.__version__, "cuda": torch.version.cuda,
             "nccl": ".".join(map(str, torch.cuda.nccl.version())), "cudnn": torch.backends.cudnn.version()}
    properties = torch.cuda.get_device_properties(0)
    found |= {"multiprocessors": properties.multi_processor_count, "l2_bytes": properties.L2_cache_size}
    return found | {name.replace("-", "_"): tool(name) is not None for name in ("compute-sanitizer", "cuda-gdb", "nvcc")}


def main():
    gpus = ask_nvidia_smi(list(FIELDS))
    if not gpus:
        print("machine: nvidia-smi knows no GPU", file=sys.stderr)
        return 3
    print(json.dumps({FIELDS[name]: value for name, value in gpus[0].items()} | {"kernel": platform.release()} | software()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
