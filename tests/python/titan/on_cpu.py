"""Runs examples/python/titan.py without a GPU. torchtitan is for accelerators: here it finds one that is the CPU, attention without
FlexAttention, which has no gradient there, and sums in place of the products that gloo lacks.

    on_cpu.py CONFIGURATION               as `python titan.py CONFIGURATION`
    on_cpu.py --module titan ...          as `python -m torchtitan.train --module titan ...`
"""
import pathlib
import runpy
import sys
import types

import torch
import torch._utils
import torch.distributed
from torch.distributed.fsdp import FSDPModule

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))
torch._utils._get_available_device_type = lambda: "cpu"
torch.cpu.current_device = lambda: 0
torch.cpu.empty_cache = torch.cpu.reset_peak_memory_stats = lambda: None
torch.cpu.get_device_name = lambda device: "cpu"
torch.cpu.get_device_properties = lambda device: types.SimpleNamespace(total_memory=1 << 34)
torch.cpu.memory_stats = lambda device: {}
barrier, divide = torch.distributed.barrier, FSDPModule.set_gradient_divide_factor
torch.distributed.barrier = lambda device_ids: barrier()


def set_gradient_divide_factor(module, factor):
    divide(module, factor)
    module.set_force_sum_reduction_for_comms(True)


FSDPModule.set_gradient_divide_factor = set_gradient_divide_factor
import torchtitan.train  # noqa: E402
from torchtitan.models.common import ScaledDotProductAttention  # noqa: E402
from torchtitan.models.deepseek_v3 import config_registry as deepseek_v3  # noqa: E402
from torchtitan.models.llama3 import config_registry as llama3  # noqa: E402


def with_other_attention(registry, name):
    given = getattr(registry, name)

    def configuration():
        config = given()
        for layer in config.model_spec.model.layers:
            layer.attention.inner_attention = ScaledDotProductAttention.Config()
        return config

    setattr(registry, name, configuration)


with_other_attention(llama3, "llama3_debugmodel")
with_other_attention(deepseek_v3, "deepseek_v3_debugmodel")
if len(sys.argv) == 2:
    runpy.run_path(str(EXAMPLES / "titan.py"), run_name="__main__")
else:
    torchtitan.train.main()
