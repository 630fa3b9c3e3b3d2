"""A small convolutional classifier and an attention block from functions: shapes, losses, gradients' norms."""

import math

import torch
import torch.nn.functional as F

torch.manual_seed(5)
images, labels = torch.rand(8, 1, 12, 12), torch.randint(0, 4, (8,))
conv1, conv2 = (torch.randn(4, 1, 3, 3) / 3).requires_grad_(), (torch.randn(8, 4, 3, 3) / 6).requires_grad_()
weight, bias = (torch.randn(4, 72) / math.sqrt(72)).requires_grad_(), torch.zeros(4, requires_grad=True)
gamma, beta = torch.ones(4, requires_grad=True), torch.zeros(4, requires_grad=True)
running_mean, running_var = torch.zeros(4), torch.ones(4)
for step in range(3):
    h = F.conv2d(images, conv1, padding=1)
    h = F.batch_norm(h, running_mean, running_var, gamma, beta, training=True)
    h = F.max_pool2d(F.relu(h), 2)
    h = F.avg_pool2d(F.gelu(F.conv2d(h, conv2, padding="same")), 2)
    scores = F.linear(h.flatten(1), weight, bias)
    loss = F.cross_entropy(scores, labels, label_smoothing=0.1)
    loss.backward()
    print(f"{loss.item():.4f}", [f"{p.grad.norm():.3f}" for p in (conv1, conv2, weight, bias, gamma, beta)])
    with torch.no_grad():
        for p in (conv1, conv2, weight, bias, gamma, beta):
            p.sub_(p.grad, alpha=0.1)
            p.grad = None
print(running_mean, running_var, scores.argmax(1).shape)

x = torch.randn(2, 5, 8)
q, k, v = (F.linear(x, torch.randn(8, 8) / 3).view(2, 5, 2, 4).transpose(1, 2) for _ in range(3))
q.requires_grad_()
mask = torch.tril(torch.ones(5, 5)).bool()
att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
att = att.masked_fill(~mask, float("-inf"))
y = F.softmax(att, dim=-1) @ v
same = F.scaled_dot_product_attention(q, k, v, is_causal=True)
print(torch.allclose(y, same, atol=1e-6), y.shape)
y = y.transpose(1, 2).contiguous().view(2, 5, 8)
out = F.layer_norm(y, (8,))
out.pow(2).mean().backward()
print(f"{out.std().item():.4f}", q.grad.abs().max() < 1e-3, torch.einsum("bhtd,bhsd->bhts", q, k).shape)
emb = torch.randn(10, 3)
print(F.embedding(torch.tensor([[1, 2], [4, 9]]), emb)[0], F.dropout(torch.ones(6), 0.5))
print(F.pad(torch.arange(4.0).view(1, 2, 2), (1, 1), value=-1), F.interpolate(torch.arange(4.0).view(1, 1, 4), scale_factor=2))
