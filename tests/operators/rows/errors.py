"""The mistakes of beginners: torch's own words. (What gradlab adds to them is in `tests/test_hints.py`.)"""

from __future__ import annotations

import numpy as np
from operators.spelling import N, V, rows_for

INPUTS = {
    "x": N(2, 3),
    "y": N(2, 3),
    "w": N(3, 4),
    "v": N(3),
    "s": V(1.5),
    "i": V([0, 2, 1], np.int64),
    "n": V([[1, 2], [3, 4]], np.int64),
}

ROWS = [
    row
    for row in rows_for(
        INPUTS,
        """
    # what requires no gradient
    x.detach().sum().backward()
    n.sum().backward()
    exec("with torch.no_grad(): z = (x * 2).sum()"); z.backward()
    torch.autograd.grad(x.detach().sum(), x)
    torch.autograd.grad(x.sum(), x.detach())
    torch.tensor([1, 2], requires_grad=True)
    n.requires_grad_()
    n.requires_grad = True; n
    torch.arange(3, requires_grad=True)
    n.float().requires_grad_().sum().backward()
    x.argmax().backward()
    (x > 0).sum().backward()
    torch.tensor(x.sum().item()).backward()
    # not a scalar
    x.backward()
    (x * 2).backward()
    torch.autograd.grad(x * 2, x)
    (x * 2).backward(torch.ones(3, dtype=x.dtype))
    (x * 2).backward(torch.ones(6, dtype=x.dtype))
    x.sum().backward(torch.ones(2, dtype=x.dtype))
    (x * 2).backward('a')
    x.sum(1).mean(0, keepdim=True).backward(); x.grad
    # a second time
    z = (x * x).sum(); z.backward(); z.backward()
    z = (x + 1).sum(); z.backward(); z.backward(); x.grad
    z = x.exp().sum(); torch.autograd.grad(z, x); torch.autograd.grad(z, x)
    z = (x * x).sum(); z.backward(retain_graph=True); z.backward(); x.grad
    h = x.tanh(); h.sum().backward(); (h * 2).sum().backward()
    # in place
    x.add_(1)
    x += 1; x
    x[0] = 1.; x
    x[x > 0] = 0.; x
    x.zero_()
    x[0].mul_(2)
    x.t().add_(1)
    x.data += 1; x.is_leaf
    z = x.exp(); z += 1; z.sum().backward()
    z = x.sigmoid(); z.mul_(2); z.sum().backward()
    z = x * 2; u = z ** 2; z += 1; u.sum().backward()
    z = x * y; exec("with torch.no_grad(): y.add_(1)"); z.sum().backward()
    z = x.relu(); z[0] = 1.; z.sum().backward(); x.grad
    torch.zeros(3).expand(2, 3).add_(1)
    torch.tensor([1, 2]).add_(0.5)
    torch.tensor([1, 2]).div_(2)
    torch.ones(3).add_(torch.ones(2, 3))
    exec("for k in [0]: x -= 0.1 * x")
    # leaves
    z = x * 2; z.sum().backward(); z.grad
    z = x * 2; z.retain_grad(); z.sum().backward(); z.grad
    x.grad
    x.grad.zero_()
    z = x - 0.1 * x; z.grad
    (x * 2).requires_grad_(False)
    x.detach().retain_grad()
    x.detach().register_hook(print)
    x.grad = torch.ones(3); x
    x.grad = 1; x
    # out of torch
    x.numpy()
    (x * 2).numpy()
    (x * 2).sum().numpy()
    import numpy as np; np.array(x)
    import numpy as np; np.mean(np.array(x))
    import numpy as np; torch.from_numpy(np.array([[1, 2], [3]], dtype=object))
    import numpy as np; torch.tensor(np.array([[1, 2], [3]], dtype=object))
    import numpy as np; torch.tensor(np.array(['1', '2']))
    import numpy as np; torch.from_numpy(np.array(['1', '2']))
    import numpy as np; torch.from_numpy([1, 2])
    torch.tensor(x)
    torch.tensor(x.detach())
    torch.tensor(x, requires_grad=True) * 1
    x.item()
    int(x)
    bool(x)
    bool(x > 0)
    exec("if x > 0: pass")
    exec("while v: pass")
    x == y and 1
    len(s)
    list(s)
    exec("for a in s: pass")
    # shapes
    x @ y
    torch.mm(x, y)
    x.mm(v)
    torch.mm(v, w)
    x @ torch.ones(2, dtype=x.dtype)
    v @ x
    v @ torch.ones(4, dtype=x.dtype)
    torch.matmul(x, y)
    torch.dot(v, torch.ones(4, dtype=x.dtype))
    torch.dot(x, y)
    x.dot(y)
    torch.ones(2, 3, 4) @ torch.ones(2, 3, 4)
    torch.bmm(torch.ones(2, 3, 4), torch.ones(3, 4, 5))
    x @ s
    F.linear(x, w)
    F.linear(x, torch.ones(4, 3, dtype=x.dtype), torch.ones(5, dtype=x.dtype))
    x + torch.ones(4)
    x * torch.ones(2)
    x - torch.ones(3, 2)
    x.view(4)
    x.reshape(4)
    x.view(-1, 4)
    x.t().view(-1)
    x.reshape(-1, -1)
    x.expand(3, 3)
    torch.cat([x, w])
    torch.cat([x, v])
    torch.stack([x, w])
    torch.cat(x, y)
    torch.cat([1, 2])
    x.squeeze(5)
    x.unsqueeze(5)
    x.transpose(0, 2)
    x.permute(0, 1, 2)
    x.sum(2)
    x.mean(dim=3)
    x[2]
    x[0, 3]
    x[0, 0, 0]
    x[1.5]
    x[[0, 5]]
    x[::-1]
    x[i]
    x[torch.tensor([True, False, True])]
    s[0]
    # dtypes
    torch.ones(3, 2) @ n
    torch.mm(torch.ones(3, 2), n)
    x.double() @ torch.ones(3, 2)
    F.linear(torch.ones(2, 3), torch.ones(4, 3, dtype=torch.float64))
    n.mean()
    n.std()
    n.float().mean()
    n / 2
    n ** -1
    (~x)
    x & y
    torch.tensor([True]) - torch.tensor([True])
    -torch.tensor([True])
    x[torch.tensor([0.])]
    torch.zeros(2, dtype='float32')
    x.to('float64')
    torch.sqrt('a')
    torch.exp(1.)
    torch.sum([1, 2])
    torch.mean([1., 2.])
    torch.cat([torch.ones(2), torch.ones(2, dtype=torch.int64)])
    # losses
    F.mse_loss(x, torch.ones(2, dtype=x.dtype).unsqueeze(1))
    F.mse_loss(x[:, 0], torch.ones(2, 1, dtype=x.dtype))
    F.mse_loss(x, torch.ones(4, dtype=x.dtype))
    F.mse_loss(x, n[:, :1])
    F.cross_entropy(x, torch.tensor([0, 3]))
    F.cross_entropy(x, torch.tensor([0, 1, 2]))
    F.cross_entropy(x, torch.tensor([[0], [1]]))
    F.cross_entropy(x, torch.tensor([0., 1.]))
    F.cross_entropy(x, torch.tensor([0, 1], dtype=torch.int32))
    F.nll_loss(x, torch.tensor([0, -1]))
    F.one_hot(torch.tensor([0, 3]), 3)
    F.one_hot(torch.tensor([0.5]))
    F.softmax(x, dim=3)
    F.mse_loss(x, y, reduction='average')
    # names
    x.foo
    torch.nn.functional.foo
    x.grad_fn.foo
    x()
    torch.zeros(2, 3, foo=1)
""",
    )
    if row.dtype == "float32"
]
