"""A model that is no Llama: convolution, a recurrent layer, biases, tied weights, a scalar, buffers that forward changes, a frozen
layer, and a layer that nothing uses."""
import torch
from torch import nn
from torch.nn import functional


class Plain(nn.Module):
    OUTSIDE = ("letters.weight",)

    def __init__(self, seed=1):
        super().__init__()
        torch.manual_seed(seed)
        self.letters = nn.Embedding(256, 48)
        self.mix = nn.Conv1d(48, 48, 3)
        self.memory = nn.GRU(48, 64, batch_first=True)
        self.norm = nn.BatchNorm1d(64)
        self.unused = nn.Linear(5, 3)
        self.frozen = nn.Linear(64, 48).requires_grad_(False)
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.head = nn.Linear(48, 256)
        self.head.weight = self.letters.weight
        nn.init.normal_(self.letters.weight, std=0.1)
        nn.init.eye_(self.frozen.weight)
        nn.init.zeros_(self.frozen.bias)

    def forward(self, samples):
        """samples i64 [batch, positions + 1]; the mean loss, nats a token."""
        x = self.letters(samples[:, :-1]).transpose(1, 2)
        x = functional.silu(self.mix(functional.pad(x, (2, 0)))).transpose(1, 2)
        x = self.norm(self.memory(x)[0].transpose(1, 2)).transpose(1, 2)
        logits = self.head(self.frozen(x) * self.scale)
        return functional.cross_entropy(logits.flatten(0, 1), samples[:, 1:].flatten())
