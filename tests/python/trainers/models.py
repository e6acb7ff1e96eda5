"""Models and data of these tests, made on the spot: random weights, a tokenizer of bytes, conversations."""
import json

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

TEMPLATE = ("{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
            "{% if add_generation_prompt %}<|assistant|>{% endif %}")
SPECIAL = ["<|end|>", "<|user|>", "<|assistant|>"]


def byte_tokenizer():
    """A token is a byte, or one of SPECIAL."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL[0], pad_token=SPECIAL[0])
    made.add_special_tokens({"additional_special_tokens": SPECIAL[1:]})
    made.chat_template = TEMPLATE
    return made


def qwen(tokenizer, seed=1):
    """Qwen3's architecture: norms of queries and keys, head_dim of its own, tied head."""
    torch.manual_seed(seed)
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=128, tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id))


def save(model, tokenizer, folder):
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


class Lines:
    """Samples of equal length."""

    def __init__(self, count=200):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        tokens = [(index % 5) * 7 + place * (index % 3) for place in range(24)]
        return {"input_ids": tokens, "labels": tokens}


def write_conversations(path, count=120):
    """Questions of different lengths, and answers that can be learned from few of them."""
    things = ("cat", "dog", "horse", "cow", "crocodile")
    with open(path, "w") as file:
        for index in range(count):
            thing = things[index % len(things)]
            said = f"What is number {index}, the {thing}?"
            messages = [{"role": "user", "content": said}, {"role": "assistant", "content": "It is an animal."}]
            if index % 3 == 0:
                messages += [{"role": "user", "content": "Sure?"}, {"role": "assistant", "content": "Yes, quite sure."}]
            file.write(json.dumps({"messages": messages}) + "\n")
