"""requires_grad, grad_fn, leaves, accumulation, detach and no_grad, vector-Jacobian products, and the usual errors."""

import torch
from torch.autograd import Variable

x = torch.ones(2, 2, requires_grad=True)
print(x)
y = x + 2
print(y, y.grad_fn is not None)
z = y * y * 3
out = z.mean()
print(z, out)
out.backward()
print(x.grad)

a = torch.randn(2, 2, generator=torch.Generator().manual_seed(3))
a = (a * 3) / (a - 1)
print(a.requires_grad)
a.requires_grad_(True)
b = (a * a).sum()
print(b.grad_fn)

x = torch.tensor([2.0, 3.0], requires_grad=True)
w = torch.tensor([6.0, 4.0], requires_grad=True)
Q = 3 * x**3 - w**2
Q.backward(gradient=torch.tensor([1.0, 1.0]))
print(9 * x**2 == x.grad, -2 * w == w.grad)
for attempt in (lambda: Q.sum().backward(), Q.backward, x.numpy, lambda: torch.tensor([1, 2], requires_grad=True)):
    try:
        attempt()
    except RuntimeError as error:
        print(type(error).__name__, str(error).split(". ")[0].split(" (")[0])

x = torch.arange(4.0)
x.requires_grad_(True)
y = 2 * torch.dot(x, x)
y.backward()
print(x.grad, x.grad == 4 * x)
x.grad.zero_()
x.sum().backward()
print(x.grad)
x.grad.zero_()
y = x * x
u = y.detach()
(u * x).sum().backward()
print(x.grad == u)


def f(a):
    b = a * 2
    while b.norm() < 1000:
        b = b * 2
    return b if b.sum() > 0 else 100 * b


torch.manual_seed(0)
a = torch.randn(size=(), requires_grad=True)
d = f(a)
d.backward()
print(a, d, a.grad == d / a)

v = Variable(torch.FloatTensor([[1, 2], [3, 4]]), requires_grad=True)
t_out = torch.mean(v * v)
t_out.backward()
print(v.grad, v.data, v.data.numpy())
inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).t()
for n in range(2):
    out.backward(torch.ones_like(out), retain_graph=True)
    print(inp.grad)
inp.grad.zero_()
print(out.grad_fn, out.grad_fn.next_functions[0][0])

x = torch.tensor(3.0, requires_grad=True)
(first,) = torch.autograd.grad(x**4, x, create_graph=True)
(second,) = torch.autograd.grad(first, x, create_graph=True)
(third,) = torch.autograd.grad(second, x)
print(first, second, third)
h = (x * 2).tanh()
h.retain_grad()
handle = h.register_hook(lambda g: print("hook", g))
(h * 3).backward()
print(h.grad, x.grad)
with torch.set_grad_enabled(False):
    print((x * 2).requires_grad)
