"""A Llama of our layout in plain PyTorch, the reference for training on a card (gpu/reference.py) and on a CPU
(step/pytorch_step.py)."""
import torch
import torch.nn.functional as F


def matrices(config):
    """Shapes of the matrices; the norms are a 20000th of the parameters."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim") or hidden // config["num_attention_heads"]
    queries, keys = head * config["num_attention_heads"], head * (config.get("num_key_value_heads") or config["num_attention_heads"])
    layer = [(queries, hidden), (keys, hidden), (keys, hidden), (hidden, queries), (inner, hidden), (inner, hidden), (hidden, inner)]
    ends = 1 if config.get("tie_word_embeddings") else 2
    return [(config["vocab_size"], hidden)] * ends + layer * config["num_hidden_layers"]


class Llama(torch.nn.Module):
    """Weights in f32, random; computes in `compute`, but norms, loss and rotation in f32."""

    def __init__(self, config, device, compute):
        super().__init__()
        self.device, self.compute = device, compute
        self.heads = config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads") or self.heads
        self.head = config.get("head_dim") or config["hidden_size"] // self.heads
        self.eps, self.theta = config.get("rms_norm_eps", 1e-6), config.get("rope_theta", 10000.0)
        self.layers, self.tied = config["num_hidden_layers"], config.get("tie_word_embeddings", False)
        self.weights = torch.nn.ParameterList(torch.randn(shape, device=device) * 0.02 for shape in matrices(config))
        self.norms = torch.nn.ParameterList(torch.ones(config["hidden_size"], device=device) for _ in range(2 * self.layers + 1))

    def norm(self, x, i):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps) * self.norms[i]).to(self.compute)

    def rotate(self, x, cos, sin):
        left, right = x.chunk(2, dim=-1)
        return (x * cos + torch.cat((-right, left), dim=-1) * sin).to(self.compute)

    def block(self, x, layer, cos, sin):
        first = (1 if self.tied else 2) + 7 * layer
        q, k, v, o, gate, up, down = (self.weights[first + i].to(self.compute) for i in range(7))
        batch, sequence, _ = x.shape
        y = self.norm(x, 2 * layer)
        split = lambda t, heads: t.view(batch, sequence, heads, self.head).transpose(1, 2)
        queries, keys = split(F.linear(y, q), self.heads), split(F.linear(y, k), self.kv_heads)
        attended = F.scaled_dot_product_attention(self.rotate(queries, cos, sin), self.rotate(keys, cos, sin),
                                                  split(F.linear(y, v), self.kv_heads), is_causal=True,
                                                  enable_gqa=self.kv_heads != self.heads)
        x = x + F.linear(attended.transpose(1, 2).reshape(batch, sequence, -1), o)
        y = self.norm(x, 2 * layer + 1)
        return x + F.linear(F.silu(F.linear(y, gate)) * F.linear(y, up), down)

    def forward(self, tokens, labels):
        place = torch.arange(tokens.shape[1], device=self.device, dtype=torch.float32)
        angles = torch.outer(place, self.theta ** (-torch.arange(0, self.head, 2, device=self.device).float() / self.head))
        cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
        x = F.embedding(tokens, self.weights[0].to(self.compute))
        for layer in range(self.layers):
            x = self.block(x, layer, cos, sin)
        logits = F.linear(self.norm(x, 2 * self.layers), self.weights[0 if self.tied else 1].to(self.compute))
        return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
