"""Advice in words that names lines of the program, which are recorded here.

As in `advised_operations`: a program with an error, `!` the advice, `>` the program corrected as advised.
"""

SETUP = """
x = X.tensor([[1., 2., 3.], [4., 5., 6.]])
w = X.ones(2, 3, requires_grad=True)
F, nn, optim = X.nn.functional, X.nn, X.optim
"""

ROWS = r"""
with X.no_grad(): h = w.exp()
| loss = h.sum()
| loss.backward()
! compute it outside no_grad() on line 1
> h = w.exp()
| loss = h.sum()
| loss.backward()
with X.inference_mode(): h = w.exp()
| loss = h.sum()
| loss.backward()
! compute it outside inference_mode() on line 1
> h = w.exp()
| loss = h.sum()
| loss.backward()
h = w.exp().detach()
| loss = h.sum()
| loss.backward()
! remove detach() on line 1 if you need the gradient
> h = w.exp()
| loss = h.sum()
| loss.backward()
parts = list(v.item() for v in w[0])
| loss = X.tensor(parts).sum()
| loss.backward()
! keep the tensor itself on line 1 (`X.stack` joins several)
> parts = [v for v in w[0]]
| loss = X.stack(parts).sum()
| loss.backward()
y = w.exp()
| z = F.relu(y, inplace=True)
| z.sum().backward()
! remove `inplace=True` on line 2
> y = w.exp()
| z = F.relu(y)
| z.sum().backward()
m = nn.ReLU(inplace=True)
| y = w.exp()
| z = m(y)
| z.sum().backward()
! remove inplace=True, or pass it a clone()
> m = nn.ReLU()
| y = w.exp()
| z = m(y)
| z.sum().backward()
> m = nn.ReLU(inplace=True)
| y = w.exp()
| z = m(y.clone())
| z.sum().backward()
y = w * 2
| y.sum().backward()
| y.grad
! call `y.retain_grad()` before backward()
> y = w * 2
| y.retain_grad()
| y.sum().backward()
| y.grad
o = optim.SGD([w], .1)
| l = (w * w).sum()
| l.backward(retain_graph=True)
| o.step()
| l.backward()
! run every backward() before step() on line 4, or compute the loss again after it
> o = optim.SGD([w], .1)
| l = (w * w).sum()
| l.backward(retain_graph=True)
| l.backward()
| o.step()
> o = optim.SGD([w], .1)
| l = (w * w).sum()
| l.backward(retain_graph=True)
| o.step()
| l = (w * w).sum()
| l.backward()
y = w.exp()
| z = y.detach()
| z += 1
| y.sum().backward()
! detach() shares the memory: write detach().clone() on line 2
> y = w.exp()
| z = y.detach().clone()
| z += 1
| y.sum().backward()
y = w * w
| with X.no_grad(): w += 1
| y.sum().backward()
! run backward() before the write on line 2, or compute the loss again after it
> y = w * w
| y.sum().backward()
| with X.no_grad(): w += 1
> y = w * w
| with X.no_grad(): w += 1
| y = w * w
| y.sum().backward()
a, b = X.ones(2), X.ones(2)
| loss = (a * b).sum()
| loss.backward()
! call requires_grad_() on the tensor whose gradient you need (a or b) before line 2
> a, b = X.ones(2), X.ones(2)
| a.requires_grad_()
| loss = (a * b).sum()
| loss.backward()
y = w * 1
| z = w * 2
| X.autograd.grad(z.sum(), y)
! differentiate with respect to the tensor that was used, or use this one
> y = w * 1
| z = w * 2
| X.autograd.grad(z.sum(), w)
> y = w * 1
| z = y * 2
| X.autograd.grad(z.sum(), y)
"""
