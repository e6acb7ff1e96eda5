"""Adds to this folder what transformers computes of model/ when its RoPE is scaled as that of Llama 3.1.

    python generate_llama3.py        (needs torch, transformers, numpy)

Of the 8 frequencies of a head the scaling leaves the highest, stretches the lowest, and mixes one between. Writes
config.llama3.json, in the keys of transformers before 5 as published checkpoints have them, and llama3_logits.f32.bin.
"""
import json
import pathlib

import numpy
import torch
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
SCALING = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 64}
SHAPE = (2, 48)


def main():
    config = json.loads((HERE / "model" / "config.v4.json").read_text()) | {"rope_scaling": SCALING}
    (HERE / "model" / "config.llama3.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    torch.set_num_threads(1)
    model = LlamaForCausalLM.from_pretrained(HERE / "model", config=LlamaConfig(**config), attn_implementation="eager",
                                             dtype=torch.float32)
    assert model.config.rope_parameters["rope_type"] == "llama3"
    tokens = numpy.fromfile(HERE / "input_ids.i32.bin", "<i4").reshape(SHAPE)
    with torch.no_grad():
        logits = model(torch.from_numpy(tokens.astype("<i8"))).logits.numpy()
    plain = numpy.fromfile(HERE / "logits.f32.bin", "<f4").reshape(logits.shape)
    print("largest difference to the unscaled model:", abs(logits - plain).max())
    logits.astype("<f4").tofile(HERE / "llama3_logits.f32.bin")
    index = [line for line in (HERE / "index.txt").read_text().splitlines() if not line.startswith("llama3")]
    index.append("llama3_logits.f32.bin f32 " + " ".join(map(str, logits.shape)))
    (HERE / "index.txt").write_text("\n".join(sorted(index)) + "\n")


main()
