"""Checkpoints between DisTrO and transformers, both ways (scripts/test --transformers).

written here, opened there:  random weights, trained a little here; transformers gives the same logits.
saved there, opened here:    save_pretrained (one file, sharded, bf16); the same logits here; it trains here with the
                             losses of transformers' own gradient descent, and opens there again.
"""
import argparse
import itertools
import json
import pathlib
import subprocess
import tempfile

import numpy
import torch
import transformers

TOLERANCE = 1e-4  # of logits, absolute; logits here are of magnitude 1 to 5
STEPS = 8
LEARNING_RATE = 0.1
SEQUENCES, POSITIONS, VOCABULARY = 3, 33, 257


PLAIN_ROPE = {"rope_type": "default", "rope_theta": 20000.0}
LLAMA3_ROPE = {"rope_type": "llama3", "rope_theta": 20000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 32}


# By name, an architecture besides Llama and its keys; windows are shorter than the sequences.
OTHERS = {
    "qwen2": ("qwen2", {}),
    "qwen2_windows": ("qwen2", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2}),
    "qwen3": ("qwen3", {"head_dim": 40}),
    "qwen3_windows": ("qwen3", {"use_sliding_window": True, "sliding_window": 8,
                                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}),
    "mistral": ("mistral", {"sliding_window": 8}),
    "mistral_without_window": ("mistral", {"sliding_window": None, "head_dim": 20}),
    "smollm3": ("smollm3", {"no_rope_layers": [1, 0, 1], "tie_word_embeddings": True}),
    "smollm3_windows": ("smollm3", {"no_rope_layer_interval": 3, "use_sliding_window": True, "sliding_window": 8}),
}


def model_config(architecture="llama", kv_heads=2, tied=False, head_dim=24, rope=PLAIN_ROPE, **keys):
    return transformers.AutoConfig.for_model(architecture, **({
        "hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": kv_heads,
        "head_dim": head_dim, "intermediate_size": 160, "vocab_size": VOCABULARY, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6, "rope_parameters": dict(rope), "tie_word_embeddings": tied, "initializer_range": 0.1,
        "pad_token_id": None} | keys))


class Check:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.tokens = torch.randint(0, VOCABULARY, (SEQUENCES, POSITIONS), generator=torch.Generator().manual_seed(3))
        (folder / "tokens").write_bytes(self.tokens.numpy().astype("<i4").tobytes())

    def ours(self, *arguments):
        """Logits, and the losses before each training step."""
        result = subprocess.run(
            [self.program, f"--tokens={self.folder}/tokens", f"--sequences={SEQUENCES}",
             f"--learning_rate={LEARNING_RATE}", f"--write_logits={self.folder}/logits", *arguments],
            check=True, capture_output=True, text=True)
        logits = numpy.fromfile(self.folder / "logits", "<f4").reshape(SEQUENCES, POSITIONS, VOCABULARY)
        return logits, [float(line) for line in result.stdout.split()]

    def open_there(self, folder):
        model, info = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True)
        for key, names in info.items():
            assert not names, f"{folder}: {key}: {names}"
        return model

    def theirs(self, model):
        with torch.no_grad():
            return model(self.tokens).logits.numpy()

    def losses_there(self, model):
        losses = []
        for _ in range(STEPS):
            loss = model(self.tokens, labels=self.tokens).loss
            losses.append(loss.item())
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= LEARNING_RATE * parameter.grad
        return losses

    def compare(self, what, ours, theirs, tolerance=TOLERANCE):
        difference = float(numpy.abs(numpy.asarray(ours) - numpy.asarray(theirs)).max())
        print(f"  {what}: largest difference {difference:.1e}, allowed {tolerance:.0e}, "
              f"largest value {float(numpy.abs(theirs).max()):.2f}")
        assert difference <= tolerance, what

    def written_here(self, config, name):
        source = self.folder / f"{name}.json"
        source.write_text(json.dumps(config.to_dict()))
        written = self.folder / f"{name}_written"
        logits, losses = self.ours(f"--init_config={source}", f"--train={STEPS}", f"--write_checkpoint={written}")
        assert losses[-1] < losses[0]
        model = self.open_there(written)
        self.compare("written here, opened there, logits", logits, self.theirs(model))
        assert model.config.rope_parameters == config.rope_parameters, model.config.rope_parameters
        for key in ("model_type", "tie_word_embeddings", "sliding_window", "layer_types", "no_rope_layers"):
            assert getattr(model.config, key, None) == getattr(config, key, None), key

    def saved_there(self, config, name, dtype=torch.float32, **save):
        torch.manual_seed(5)
        saved = self.folder / f"{name}_saved"
        transformers.AutoModelForCausalLM.from_config(config).to(dtype).save_pretrained(saved, **save)
        model = self.open_there(saved)
        logits, _ = self.ours(f"--checkpoint={saved}")
        self.compare("saved there, opened here, logits", logits, self.theirs(model))
        trained = self.folder / f"{name}_trained"
        logits, losses = self.ours(f"--checkpoint={saved}", f"--train={STEPS}", f"--write_checkpoint={trained}")
        self.compare(f"trained here, {STEPS} losses", losses, self.losses_there(model))
        print(f"  loss {losses[0]:.4f} -> {losses[-1]:.4f}")
        assert losses[-1] < losses[0] - 0.1
        self.compare("trained here, opened there, logits", logits, self.theirs(self.open_there(trained)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path, help="model_check of the build")
    program = parser.parse_args().program
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        check = Check(program, pathlib.Path(folder))
        for kv_heads, tied, head_dim in itertools.product((1, 2, 4), (False, True), (24, 16)):
            name = f"kv{kv_heads}_{'tied' if tied else 'untied'}_d{head_dim}"
            print(name)
            config = model_config(kv_heads=kv_heads, tied=tied, head_dim=head_dim)
            check.written_here(config, name)
            check.saved_there(config, name)
        print("llama3")
        config = model_config(tied=True, rope=LLAMA3_ROPE)
        check.written_here(config, "llama3")
        check.saved_there(config, "llama3")
        for name, (architecture, keys) in OTHERS.items():
            print(name)
            config = model_config(architecture, **keys)
            check.written_here(config, name)
            check.saved_there(config, name)
        config = model_config()
        print("sharded")
        check.saved_there(config, "sharded", max_shard_size="200KB")
        assert (check.folder / "sharded_saved" / "model.safetensors.index.json").exists()
        print("bf16")
        check.saved_there(config, "bf16", dtype=torch.bfloat16)
    print("all compatible")


main()
