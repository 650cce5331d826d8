"""A small decoder of the Llama kind, whole or as one rank's part of a tensor-parallel one."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class RowParallel(nn.Linear):
    """A linear layer of which each rank holds some input columns; the parts are summed over the ranks."""

    def __init__(self, inputs, outputs, parts, prefix):
        super().__init__(inputs // parts, outputs, bias=False)
        self.parts, self.prefix = parts, prefix

    def reduce(self, y):
        dist.all_reduce(y)
        return y

    def forward(self, x):
        y = F.linear(x, self.weight)
        return self.reduce(y) if self.parts > 1 else y


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Attention(nn.Module):
    def __init__(self, dim, heads, parts, prefix):
        super().__init__()
        self.prefix = prefix
        self.heads, self.head_dim = heads // parts, dim // heads
        inner = self.heads * self.head_dim
        self.q_proj = nn.Linear(dim, inner, bias=False)
        self.k_proj = nn.Linear(dim, inner, bias=False)
        self.v_proj = nn.Linear(dim, inner, bias=False)
        self.o_proj = RowParallel(dim, dim, parts, f"{prefix}.o_proj")

    def forward(self, x, cos, sin, cache, start):
        batch, length, _ = x.shape
        q, k, v = (p(x).view(batch, length, self.heads, self.head_dim).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        keys, values = cache
        keys[:, :, start:start + length] = k
        values[:, :, start:start + length] = v
        y = F.scaled_dot_product_attention(q, keys[:, :, :start + length], values[:, :, :start + length], is_causal=length > 1)
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, self.heads * self.head_dim))


class Mlp(nn.Module):
    def __init__(self, dim, hidden, parts, prefix):
        super().__init__()
        self.prefix = prefix
        self.gate_proj = nn.Linear(dim, hidden // parts, bias=False)
        self.up_proj = nn.Linear(dim, hidden // parts, bias=False)
        self.down_proj = RowParallel(hidden, dim, parts, f"{prefix}.down_proj")

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, sizes, parts, prefix):
        super().__init__()
        self.prefix = prefix
        self.input_layernorm = Norm(sizes["dim"])
        self.self_attn = Attention(sizes["dim"], sizes["heads"], parts, f"{prefix}.self_attn")
        self.post_attention_layernorm = Norm(sizes["dim"])
        self.mlp = Mlp(sizes["dim"], sizes["hidden"], parts, f"{prefix}.mlp")

    def forward(self, x, cos, sin, cache, start):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, cache, start)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """`parts`: ranks that share each layer's heads and columns; 1 when every rank computes all of it."""

    def __init__(self, sizes, parts=1):
        super().__init__()
        self.sizes, self.parts = sizes, parts
        self.embed_tokens = nn.Embedding(sizes["vocab"], sizes["dim"])
        self.layers = nn.ModuleList(Layer(sizes, parts, f"layers.{i}") for i in range(sizes["layers"]))
        self.norm = Norm(sizes["dim"])
        self.lm_head = nn.Linear(sizes["dim"], sizes["vocab"], bias=False)
        half = sizes["dim"] // sizes["heads"] // 2
        angles = torch.outer(torch.arange(sizes["context"]), 10000.0 ** (-torch.arange(half) / half))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def caches(self, batch, length):
        """Keys and values of every layer for a batch of sequences."""
        sizes = self.sizes
        shape = (batch, sizes["heads"] // self.parts, length, sizes["dim"] // sizes["heads"])
        return [(torch.zeros(shape), torch.zeros(shape)) for _ in self.layers]

    def forward(self, tokens, caches, start):
        x = self.embed_tokens(tokens)
        cos, sin = self.cos[start:start + tokens.shape[1]], self.sin[start:start + tokens.shape[1]]
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cos, sin, cache, start)
        return self.lm_head(self.norm(x[:, -1:]))
