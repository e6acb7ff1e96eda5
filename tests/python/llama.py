"""A Llama as a plain module, with the names that transformers has: the same function as worker/model/decoder."""
import torch
from torch import nn
from torch.nn import functional


class Norm(nn.Module):
    def __init__(self, size, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.epsilon = epsilon

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon))


def freeze(model, seen=0):
    """Freezes the feed-forward layers, with the same values in every process, and adds a buffer that forward would not change."""
    generator = torch.Generator().manual_seed(7)
    for layer in model.model.layers:
        for parameter in layer.mlp.parameters():
            parameter.requires_grad_(False).data.normal_(std=0.05, generator=generator)
        layer.register_buffer("seen", torch.tensor(seen))
    return model


def rotate(x, theta):
    """x [batch, heads, positions, size]: rotary position embedding, halves apart."""
    size = x.shape[-1]
    frequencies = theta ** (-torch.arange(0, size, 2, device=x.device) / size)
    angles = torch.arange(x.shape[2], device=x.device)[:, None] * frequencies
    cos, sin = (torch.cat([part, part], -1).to(x.dtype) for part in (angles.cos(), angles.sin()))
    return x * cos + torch.cat([-x[..., size // 2:], x[..., :size // 2]], -1) * sin


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, self.heads, self.kv_heads = (config[key] for key in ("hidden_size", "num_attention_heads",
                                                                     "num_key_value_heads"))
        self.size, self.theta = hidden // self.heads, config["rope_theta"]
        self.q_proj = nn.Linear(hidden, self.heads * self.size, bias=False)
        self.k_proj = nn.Linear(hidden, self.kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(hidden, self.kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(self.heads * self.size, hidden, bias=False)

    def forward(self, x):
        batch, positions, _ = x.shape
        q, k, v = (proj(x).view(batch, positions, heads, self.size).transpose(1, 2) for proj, heads in
                   ((self.q_proj, self.heads), (self.k_proj, self.kv_heads), (self.v_proj, self.kv_heads)))
        q, k = rotate(q, self.theta), rotate(k, self.theta)
        k, v = (one.repeat_interleave(self.heads // self.kv_heads, 1) for one in (k, v))
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, positions, -1))


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attn, self.mlp = Attention(config), Mlp(config)
        self.input_layernorm = Norm(config["hidden_size"], config["rms_norm_eps"])
        self.post_attention_layernorm = Norm(config["hidden_size"], config["rms_norm_eps"])

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Block(config) for _ in range(config["num_hidden_layers"]))
        self.norm = Norm(config["hidden_size"], config["rms_norm_eps"])

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Llama(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.model = Body(config)
        self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        if config["tie_word_embeddings"]:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, samples):
        """samples i64 [batch, positions + 1]; the mean loss, nats a token."""
        logits = self.lm_head(self.model(samples[:, :-1]))
        return functional.cross_entropy(logits.float().flatten(0, 1), samples[:, 1:].flatten())
