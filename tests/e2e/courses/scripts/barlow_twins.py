"""The cross-correlation loss of two views, written as research code writes it: in place through the diagonal."""

import torch


def off_diagonal(x):
    n, m = x.shape
    assert n == m
    return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


torch.manual_seed(0)
z1, z2 = (torch.randn(32, 6, requires_grad=True) for _ in range(2))
n1 = (z1 - z1.mean(0)) / z1.std(0)
n2 = (z2 - z2.mean(0)) / z2.std(0)
c = n1.T @ n2
c.div_(32)
on_diag = torch.diagonal(c).add_(-1).pow_(2).sum()
off_diag = off_diagonal(c).pow_(2).sum()
loss = on_diag + 0.0051 * off_diag
loss.backward()
print(loss)
print(z1.grad[:2])
print(z2.grad.norm(), c.shape, c.is_leaf)
print(on_diag, off_diag.grad_fn)
