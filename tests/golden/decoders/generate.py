"""Writes what transformers computes of a tiny model of each architecture besides Llama.

    python generate.py        (needs torch, transformers, numpy)

Weights, biases and norms are random, so that each of them shows. A folder has model/ as save_pretrained writes it, the
tokens [2, 24], logits and loss, and the gradient of the loss by every parameter (gradients.safetensors).
"""
import pathlib
import sys

import numpy
import safetensors.torch
import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
SEQUENCES, POSITIONS, VOCABULARY = 2, 24, 64
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 48, "vocab_size": VOCABULARY, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
         "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
# By folder, the class and what it is given besides the sizes.
MODELS = {
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen2_windows": ("Qwen2", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {"head_dim": 16, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "mistral": ("Mistral", {"head_dim": 12, "sliding_window": 8}),
    "smollm3": ("SmolLM3", {"num_hidden_layers": 3, "no_rope_layers": [1, 0, 1]}),
}


def make(folder, name, keys):
    config = getattr(transformers, name + "Config")(**(SIZES | keys))
    torch.manual_seed(1)
    model = getattr(transformers, name + "ForCausalLM")._from_config(config, attn_implementation="eager").float()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.normal_(1 if "norm" in key else 0, 0.2)
    tokens = torch.randint(0, VOCABULARY, (SEQUENCES, POSITIONS + 1), generator=torch.Generator().manual_seed(2))
    logits = model(tokens[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    model.save_pretrained(folder / "model")
    (folder / "model" / "generation_config.json").unlink(missing_ok=True)
    safetensors.torch.save_file({key: parameter.grad for key, parameter in model.named_parameters()},
                                folder / "gradients.safetensors")
    arrays = {"tokens.i32": tokens.numpy().astype("<i4"), "logits.f32": logits.detach().numpy().astype("<f4"),
              "loss.f32": numpy.array([loss.item()], "<f4")}
    index = []
    for array, values in sorted(arrays.items()):
        values.tofile(folder / f"{array}.bin")
        index.append(f"{array}.bin {array.split('.')[1]} " + " ".join(map(str, values.shape)))
    (folder / "index.txt").write_text("\n".join(index) + "\n")
    print(folder.name, sum(parameter.numel() for parameter in model.parameters()), "parameters, loss", loss.item())


def main():
    torch.set_num_threads(1)
    for folder in sys.argv[1:] or MODELS:
        (HERE / folder).mkdir(exist_ok=True)
        make(HERE / folder, *MODELS[folder])


main()
