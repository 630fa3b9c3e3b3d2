"""Short autograd sessions, run with torch (to record) and with gradlab (to compare).

Each session is a sequence of statements, in which `lib` is the library and `leaf(values)` a tensor that requires a gradient. The
last one is an expression, whose value `plain` converts to JSON types. A statement that raises ends the session, and the error is
recorded.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import Any

SESSIONS = """
# values and gradients
sum of squares: x = leaf([1., 2., 3.]); (x * x).sum().backward(); x.grad
accumulation: x = leaf([1., 2.]); y = (x ** 2).sum(); y.backward(retain_graph=True); y.backward(); x.grad
accumulation keeps the tensor: x = leaf([1., 2.]); x.sum().backward(); g = x.grad; (x * 3).sum().backward(); [g is x.grad, g]
zeroed between: x = leaf([1., 2.]); x.sum().backward(); x.grad.zero_(); (x * 3).sum().backward(); x.grad
grad set to None: x = leaf([1., 2.]); x.sum().backward(); x.grad = None; (x * 3).sum().backward(); x.grad
freed graph: x = leaf([1., 2.]); y = (x ** 2).sum(); y.backward(); y.backward()
a graph that saved nothing is never freed: x = leaf([1., 2.]); y = (x + 1).sum(); y.backward(); y.backward(); x.grad
freed by grad too: x = leaf([1., 2.]); y = x.exp().sum(); lib.autograd.grad(y, x); lib.autograd.grad(y, x)
leaf on itself: x = leaf(2.); x.backward(); x.grad
weights: x = leaf([1., 2., 3.]); (x * x).backward(lib.tensor([1., 10., 100.])); x.grad
weights of one element: x = leaf([2.]); (x * x).backward(lib.tensor([3.])); x.grad
one element needs no weights: x = leaf([[2.]]); (x * x).backward(); x.grad
two outputs: x = leaf([1., 2.]); lib.autograd.backward([x * x, x.exp()], [lib.ones(2), lib.zeros(2)]); x.grad
the same output twice: x = leaf(3.); y = x * x; lib.autograd.backward([y, y], [lib.tensor(1.), lib.tensor(2.)]); x.grad
an output that another is made of: x = leaf(3.); y = x * x; z = y * y; lib.autograd.grad([y, z], x)
inputs of backward: x = leaf(2.); y = leaf(3.); (x * y).backward(inputs=[x]); [x.grad, y.grad]
a non-leaf in inputs: x = leaf(2.); y = x * x; z = y * x; z.backward(inputs=[y]); [y.grad, x.grad]
grad of a non-leaf: x = leaf(2.); y = x * x; z = y * y; lib.autograd.grad(z, [y, x])
grad leaves .grad alone: x = leaf(2.); lib.autograd.grad(x * x, x); x.grad
grad of itself: x = leaf(2.); y = x * x; lib.autograd.grad(y, y)
unused: x = leaf(2.); y = leaf(1.); lib.autograd.grad(x * x, [x, y], allow_unused=True)
unused, zeros: x = leaf(2.); y = leaf([1., 1.]); lib.autograd.grad(x * x, [x, y], materialize_grads=True)
unused, refused: x = leaf(2.); y = leaf(1.); lib.autograd.grad(x * x, [x, y])
materialize and allow_unused: x = leaf(2.); lib.autograd.grad(x * x, x, allow_unused=False, materialize_grads=True)
a batch of weights: x = leaf([1., 2.]); lib.autograd.grad(x ** 3, x, lib.eye(2), is_grads_batched=True)
a batch of weights through a product: a = leaf([[1., 2.], [3., 4.]]); x = leaf([1., 2.]);
    lib.autograd.grad(a @ x, (a, x), lib.eye(2), is_grads_batched=True)
constant among inputs: x = leaf(2.); c = lib.tensor(3.); lib.autograd.grad(x * c, [x, c])
dtype of the gradient: x = leaf([1., 2.]); (x.double() * 2).sum().backward(); [x.grad, str(x.grad.dtype)[-7:]]
integer times float: x = leaf([1., 2.]); n = lib.tensor([3, 4]); (x * n).sum().backward(); x.grad
double weights for a float output: x = leaf([1., 2.]); (x * 2).backward(lib.tensor([1., 2.], dtype=lib.float64)); x.grad
broadcast: a = leaf([[1.], [2.]]); b = leaf([1., 2., 3.]); (a * b).sum().backward(); [a.grad, b.grad]
# higher order
second derivative: x = leaf(2.); g, = lib.autograd.grad(x ** 3, x, create_graph=True); lib.autograd.grad(g, x)
third derivative: x = leaf(2.); y = x ** 4; d = [y := lib.autograd.grad(y, x, create_graph=True)[0] for k in range(4)]; d
third derivative of tanh: x = leaf(0.5); y = x.tanh();
    d = [y := lib.autograd.grad(y, x, create_graph=True)[0] for k in range(3)]; d
second derivative by backward: x = leaf(2.); (x ** 3).backward(create_graph=True); g = x.grad; x.grad = None; g.backward();
    x.grad
gradient penalty: x = leaf([1., 2.]); w = leaf([3., 4.]); g, = lib.autograd.grad((x * x * w).sum(), x, create_graph=True);
    (g * g).sum().backward(); [x.grad, w.grad]
Hessian by rows: x = leaf([1., 2.]); g, = lib.autograd.grad(x[0] ** 2 * x[1], x, create_graph=True);
    [lib.autograd.grad(e, x, retain_graph=True)[0] for e in g]
Hessian in one batch: x = leaf([1., 2.]); g, = lib.autograd.grad(x[0] ** 2 * x[1], x, create_graph=True);
    lib.autograd.grad(g, x, lib.eye(2), is_grads_batched=True)
vᵀJ as a function of v: x = leaf([1., 2.]); v = leaf([1., 1.]); g, = lib.autograd.grad(x ** 3, x, v, create_graph=True);
    lib.autograd.grad(g, v, lib.tensor([1., 0.]))
create_graph keeps the graph: x = leaf(2.); y = x ** 3; lib.autograd.grad(y, x, create_graph=True); lib.autograd.grad(y, x)
gradient with history: x = leaf(2.); (x ** 3).backward(create_graph=True); [x.grad, x.grad.requires_grad, x.grad.is_leaf]
# where formulas are singular
0 to the power 0: x = leaf(0.); (x ** 0).backward(); x.grad
0 to the power 0 tensor: x = leaf([0., 2.]); n = leaf([0., 3.]); (x ** n).sum().backward(); [x.grad, n.grad]
0 to the power 1: x = leaf([0., 2.]); (x ** 1).sum().backward(); x.grad
0 to the power 2: x = leaf([0., 2.]); (x ** 2.0).sum().backward(); x.grad
0 to the power 1/2: x = leaf([0., 4.]); (x ** 0.5).sum().backward(); x.grad
negative power: x = leaf([2., -4.]); (x ** -1).sum().backward(); x.grad
2 to the power: x = leaf([0., 3.]); (2 ** x).sum().backward(); x.grad
0 to the power x: x = leaf([0., 3.]); (0 ** x).sum().backward(); x.grad
negative to the power x: x = leaf([0., 3.]); ((-2) ** x).sum().backward(); x.grad
negative base, tensor exponent: x = leaf([-2., -3.]); n = leaf([2., 3.]); (x ** n).sum().backward(); [x.grad, n.grad]
abs and relu at 0: x = leaf([-1., 0., 2.]); (x.abs() + 10 * x.relu()).sum().backward(); x.grad
sqrt at 0: x = leaf([0., 4.]); x.sqrt().sum().backward(); x.grad
log at 0: x = leaf([0., 4.]); x.log().sum().backward(); x.grad
norm at 0: x = leaf([0., 0.]); x.norm().backward(); x.grad
norm: x = leaf([[3., 4.], [0., 2.]]); y = x.norm() + x.norm(1, 0).sum() + x.norm(dim=1).sum(); y.backward(); [y, x.grad]
std of equals: x = leaf([2., 2., 2.]); x.std().backward(); x.grad
std of one: x = leaf([2.]); y = x.std(); y.backward(); [y, x.grad]
var of one, corrected by 0: x = leaf([2.]); y = x.var(correction=0); y.backward(); [y, x.grad]
var corrected too much: x = leaf([1., 3.]); [x.var(correction=3), x.var(correction=2), x.std(correction=3)]
max of ties: x = leaf([[1., 3.], [3., 0.]]); x.max().backward(); x.grad
max of ties along an axis: x = leaf([[1., 3.], [1., 3.]]); y = x.max(0); y.values.sum().backward();
    [y.values, y.indices, x.grad]
min of ties: x = leaf([1., 1., 3.]); (x.min() + x.min(0).values).backward(); x.grad
maximum of equals: x = leaf([1., 2., 3.]); y = leaf([1., 3., 2.]); lib.maximum(x, y).sum().backward(); [x.grad, y.grad]
max of nan: x = leaf([1., float('nan'), 3.]); y = x.max(); y.backward(); [y, x.grad]
infinite logits: x = leaf([1., -float('inf'), 3.]); lib.nn.functional.cross_entropy(x, lib.tensor(2)).backward(); x.grad
huge logits: x = leaf([[1000., 0.], [0., -1000.]]); y = lib.nn.functional.cross_entropy(x, lib.tensor([1, 0])); y.backward();
    [y, x.grad]
huge sigmoid: x = leaf([-1000., 1000., 0.]); y = x.sigmoid(); y.sum().backward(); [y, x.grad]
mean of nothing: x = leaf([]); y = x.mean(); y.backward(); [y, x.grad]
where hides an infinity: x = leaf([0., 2.]); lib.where(x > 0, x.log(), x * 0).sum().backward(); x.grad
# leaves, modes, in place
no_grad: x = leaf(1.); f = lib.no_grad()(lambda v: v * 2); [f(x).requires_grad, (x * 2).requires_grad]
set_grad_enabled: x = leaf(1.); lib.set_grad_enabled(False); a = (x * 2).requires_grad; lib.set_grad_enabled(True);
    [a, (x * 2).requires_grad, lib.is_grad_enabled()]
detach: x = leaf([1., 2.]); y = x * 2; z = y.detach(); [z.requires_grad, z.is_leaf, z.grad_fn, (y + z).requires_grad]
detach shares memory: x = lib.ones(2); y = x.detach(); y[0] = 5.; [x, x._version, y._version]
detach and versions: x = leaf([1., 2.]); y = x * 2; z = y * y; y.detach().zero_(); z.sum().backward()
data is not watched: x = leaf([1., 2.]); y = x * 2; z = y * y; y.data.zero_(); z.sum().backward(); x.grad
detach_ on a non-leaf: x = leaf([1., 2.]); y = x * 2; y.detach_(); [y.requires_grad, y.is_leaf]
detach_ on a view: x = leaf([1., 2.]); y = (x * 2)[0]; y.detach_()
descent under no_grad: x = leaf([1., 2.]); (x * x).sum().backward();
    [x.sub_(0.5 * x.grad) for _ in [0] if lib.set_grad_enabled(False)];
    [x.sub_(0.5 * x.grad) for _ in [0] if not lib.is_grad_enabled()]; lib.set_grad_enabled(True); [x, x.is_leaf, x._version]
integers have no gradient: x = leaf([1.5, 2.5]); n = x.long(); [n, n.requires_grad]
comparison has no gradient: x = leaf([1., 2.]); (x > 1).requires_grad
in place on a non-leaf: x = leaf([1., 2.]); y = x * 2; y.mul_(3); y.sum().backward(); [y, x.grad, y._version]
in place that the graph needs: x = leaf([1., 2.]); y = x.exp(); y.mul_(3); y.sum().backward()
in place that the graph does not need: x = leaf([1., 2.]); y = x * 3; y.exp_(); y.sum().backward(); x.grad
in place with itself: x = leaf([2., 3.]); y = x * 1; y.add_(y); y.sum().backward(); [y, x.grad]
in place through a view: x = leaf([1., 2., 3.]); y = x * 1; y[1:].mul_(10.); y.sum().backward(); [y, x.grad]
in place through a view of a view: x = leaf([[1., 2.], [3., 4.]]); y = x * 1; y.t()[0][1:].mul_(10.); y.sum().backward();
    [y, x.grad]
a view sees its base change: x = leaf([1., 2., 3.]); y = x * 1; v = y[1:]; y.mul_(2.); (v * v).sum().backward(); [v, x.grad]
a view sees another view change: x = leaf([1., 2., 3.]); y = x * 1; v = y[1:]; w = y[:2]; w.mul_(4.); v.sum().backward(); x.grad
assignment: x = leaf([1., 2., 3.]); y = x * 2; v = leaf(5.); y[1] = v; (y * y).sum().backward(); [y, x.grad, v.grad]
assignment of a row: x = leaf([[1., 2.], [3., 4.]]); v = leaf([5., 6.]); y = x * 1; y[0] = v; (y * y).sum().backward();
    [x.grad, v.grad]
assignment with a mask: x = leaf([1., -2., 3.]); y = x * 1; y[y < 0] = 0.; (y * y).sum().backward(); [y, x.grad]
assignment by list: x = leaf([1., 2., 3.]); v = leaf([5., 6.]); y = x * 1; y[[2, 0]] = v; (y * y).sum().backward();
    [y, x.grad, v.grad]
assignment into zeros: v = leaf([5., 6.]); y = lib.zeros(3); y[1:] = v * 2; (y * y).sum().backward();
    [y, v.grad, y.requires_grad]
assignment beside a list: v = leaf([5., 6.]); y = lib.zeros(2, 3, 2); y[0, :, [1, 0]] = v; (y * y).sum().backward(); [y, v.grad]
augmented assignment: x = leaf([1., 2., 3.]); y = x * 1; y[1:] *= 3; y += 1; y.sum().backward(); [y, x.grad]
copy: x = leaf([1., 2.]); y = leaf([3., 4.]); z = x * 1; z.copy_(y); (z * z).sum().backward(); [x.grad, y.grad]
copy of a constant: x = leaf([1., 2.]); z = x * 1; z.copy_(lib.ones(2)); z.sum().backward(); x.grad
fill: x = leaf([1., 2.]); z = x * 1; z.fill_(3.); z.sum().backward(); [z, x.grad]
fill with a tensor: x = leaf([1., 2.]); s = leaf(3.); z = x * 1; z.fill_(s); (z * z).sum().backward(); [x.grad, s.grad]
zero: x = leaf([1., 2.]); z = x * 1; z.zero_(); z.sum().backward(); x.grad
zero part: x = leaf([1., 2.]); z = x * 1; z[0].zero_(); z.sum().backward(); x.grad
a leaf in place: x = leaf([1., 2.]); x.add_(1)
a view of a leaf in place: x = leaf([1., 2.]); x[0].add_(1)
assignment to a leaf: x = leaf([1., 2.]); x[0] = 1.
masked assignment to a leaf: x = leaf([1., 2.]); x[x > 0] = 1.
a leaf changed after it was saved: x = leaf([1., 2.]); y = (x * x).sum(); lib.no_grad()(lambda: x.add_(1))(); y.backward()
multi-dimensional picks: x = leaf([[1., 2.], [3., 4.]]); x[[0, 1, 0], [1, 0, 1]].sum().backward(); x.grad
# hooks
a hook sees and replaces: x = leaf([1., 2.]); seen = []; h = x.register_hook(lambda g: seen.append(g.tolist()) or g * 10);
    (x * 3).sum().backward(); [seen, x.grad]
a hook removed: x = leaf([1., 2.]); h = x.register_hook(lambda g: g * 10); h.remove(); (x * 3).sum().backward(); x.grad
hooks in order of registration: x = leaf(1.); seen = []; y = x * 2;
    h = [y.register_hook(lambda g, k=k: seen.append((k, g.item())) or g + k) for k in (1, 2)]; y.backward(); [seen, x.grad]
a hook sees the sum of all uses: x = leaf(2.); y = x * 1; seen = []; y.register_hook(lambda g: seen.append(g.item()));
    (y * y + y).backward(); [seen, x.grad]
retain_grad: x = leaf(2.); y = x * 3; y.retain_grad(); (y * y).backward(); [y.grad, y.retains_grad, x.grad]
retain_grad comes after hooks: x = leaf(2.); y = x * 3; y.retain_grad(); y.register_hook(lambda g: g * 10);
    (y * y).backward(); [y.grad, x.grad]
retain_grad accumulates: x = leaf(2.); y = x * 3; y.retain_grad(); z = y + 1; z.backward(retain_graph=True); z.backward();
    [y.grad, x.grad]
retain_grad then in place: x = leaf(2.); y = x * 3; y.retain_grad(); y.mul_(5.); (y * y).backward(); [y.grad, x.grad]
hook then in place: x = leaf(2.); seen = []; y = x * 3; y.register_hook(lambda g: seen.append(g.item())); y.mul_(5.);
    (y * y).backward(); [seen, x.grad]
a hook between two in place: x = leaf(2.); seen = []; y = x * 3; y.mul_(5.);
    y.register_hook(lambda g: seen.append(g.item())); y.mul_(7.); y.backward(); [seen, x.grad]
the order at one node: x = leaf(2.); s = []; y = x * 3; y.register_hook(lambda g: s.append('tensor'));
    y.grad_fn.register_prehook(lambda g: s.append('pre')); y.grad_fn.register_hook(lambda i, o: s.append('post'));
    x.register_post_accumulate_grad_hook(lambda t: s.append(['written', t.grad.item()]));
    x.register_hook(lambda g: s.append('leaf')); y.backward(); s
a node's hook sees both sides: x = leaf(2.); s = []; y = x * 3;
    y.grad_fn.register_hook(lambda i, o: s.append([[g if g is None else g.item() for g in i], o[0].item()])); y.backward(); s
a node's hook replaces: x = leaf(2.); y = x * 3; y.grad_fn.register_hook(lambda i, o: (i[0] * 100, None)); y.backward(); x.grad
a node's prehook replaces: x = leaf(2.); y = x * 3; y.grad_fn.register_prehook(lambda o: (o[0] * 100,)); y.backward(); x.grad
grad runs the input's hook: x = leaf(2.); x.register_hook(lambda g: g * 10); [lib.autograd.grad(x * 3, x)[0], x.grad]
grad runs no written-hook: x = leaf(2.); s = []; x.register_post_accumulate_grad_hook(lambda t: s.append(1));
    lib.autograd.grad(x * 3, x); s
backward(inputs) runs the written-hook: x = leaf(2.); s = [];
    x.register_post_accumulate_grad_hook(lambda t: s.append(t.grad.item())); (x * 3).backward(inputs=x); s
a hook that returns text: x = leaf(2.); x.register_hook(lambda g: 'no'); (x * 3).backward()
a hook that changes the shape: x = leaf([2., 3.]); x.register_hook(lambda g: g[0]); (x * 3).sum().backward()
retain_grad on a leaf: x = leaf(2.); x.retain_grad(); (x * 3).backward(); [x.grad, x.retains_grad]
grad_fn and next_functions: x = leaf(2.); y = x * x + 1;
    [y.grad_fn.name(), [[n.name(), k] if n else None for n, k in y.grad_fn.next_functions],
    y.grad_fn.next_functions[0][0].next_functions[0][0].variable is x]
grad_fn is one object: x = leaf(2.); y = x * x; y.grad_fn is y.grad_fn
.grad of a non-leaf warns: x = leaf(2.); y = x * 3; y.backward(); y.grad
# losses
cross entropy: x = leaf([[1., 2., 0.], [0., 1., 3.]]); y = lib.nn.functional.cross_entropy(x, lib.tensor([1, 0]));
    y.backward(); [y, x.grad]
weighted: x = leaf([[1., 2., 0.], [0., 1., 3.]]);
    y = lib.nn.functional.cross_entropy(x, lib.tensor([1, 0]), lib.tensor([1., 2., 3.])); y.backward(); [y, x.grad]
weighted, smoothed: x = leaf([[1., 2., 0.], [0., 1., 3.]]);
    y = lib.nn.functional.cross_entropy(x, lib.tensor([1, 0]), lib.tensor([1., 2., 3.]), label_smoothing=0.2); y.backward();
    [y, x.grad]
ignored: x = leaf([[1., 2., 0.], [0., 1., 3.]]);
    y = lib.nn.functional.cross_entropy(x, lib.tensor([1, 2]), ignore_index=2, label_smoothing=0.1); y.backward(); [y, x.grad]
all ignored: x = leaf([[1., 2., 0.], [0., 1., 3.]]);
    y = lib.nn.functional.cross_entropy(x, lib.tensor([2, 2]), ignore_index=2); y.backward(); [y, x.grad]
none, ignored: x = leaf([[1., 2., 0.], [0., 1., 3.]]);
    y = lib.nn.functional.cross_entropy(x, lib.tensor([1, 2]), ignore_index=2, reduction='none'); y.sum().backward();
    [y, x.grad]
probabilities: x = leaf([[1., 2., 0.], [0., 1., 3.]]); p = leaf([[0.5, 0.25, 0.25], [0., 1., 0.]]);
    y = lib.nn.functional.cross_entropy(x, p, label_smoothing=0.1); y.backward(); [y, x.grad, p.grad]
probabilities, weighted, none: x = leaf([[1., 2., 0.]]); p = lib.tensor([[0.5, 0.25, 0.25]]);
    lib.nn.functional.cross_entropy(x, p, lib.tensor([1., 2., 3.]), reduction='none')
pixels: x = leaf([[[[1.], [2.]], [[0.], [1.]], [[3.], [1.]]]]); t = lib.tensor([[[2], [0]]]);
    y = lib.nn.functional.cross_entropy(x, t, lib.tensor([1., 2., 3.])); y.backward(); [y, x.grad]
a sequence: x = leaf([[[1., 2.], [0., 1.], [3., 1.]]]); t = lib.tensor([[2, 0]]);
    y = lib.nn.functional.cross_entropy(x, t, reduction='none'); y.sum().backward(); [y, x.grad]
one sample: x = leaf([1., 2., 0.]); y = lib.nn.functional.cross_entropy(x, lib.tensor(1)); y.backward(); [y, x.grad]
nll_loss: x = leaf([[-1., -2., -3.], [-3., -2., -1.]]);
    y = lib.nn.functional.nll_loss(x, lib.tensor([0, 2]), reduction='sum'); y.backward(); [y, x.grad]
mse_loss: x = leaf([1., 2.]); y = lib.nn.functional.mse_loss(x, lib.tensor([0., 4.])); y.backward(); [y, x.grad]
mse_loss by element: x = leaf([1., 2.]); y = lib.nn.functional.mse_loss(x, lib.tensor([0., 4.]), reduction='none'); y
one_hot: lib.nn.functional.one_hot(lib.tensor([[0, 2], [1, 0]]), 4)
layer: x = leaf([[1., 2.]]); w = leaf([[1., -1.], [0.5, 2.], [3., 0.]]); b = leaf([1., 2., 3.]);
    y = lib.nn.functional.linear(x, w, b); y.relu().sum().backward(); [y, x.grad, w.grad, b.grad]
layer on a batch of rows: x = leaf([[[1., 2.], [0., 1.]]]); w = leaf([[1., -1.], [0.5, 2.]]); b = leaf([1., 2.]);
    y = lib.nn.functional.linear(x, w, b); (y * y).sum().backward(); [y, x.grad, w.grad, b.grad]
log_softmax: x = leaf([[1., 2.], [3., 0.]]); y = x.log_softmax(0); y[0].sum().backward(); [y, x.grad]
softmax: x = leaf([[1., 2.], [3., 0.]]); y = x.softmax(-1); (y * y).sum().backward(); [y, x.grad]
softmax of a scalar: lib.softmax(lib.tensor(3.), 0)
# indexing, shapes
int beside a list: x = lib.arange(24).reshape(2, 3, 4);
    [x[0, :, [1, 2]], x[:, 0, [1, 2]].shape, x[[0, 1], :, 2].shape, x[1, ..., [3]]]
separated lists: x = lib.arange(24).reshape(2, 3, 4); [x[[0, 1], :, [1, 2]], x[[[0], [1]], :, [1, 2]].shape]
masks: x = lib.arange(6).reshape(2, 3);
    [x[x > 2], x[lib.tensor([True, False])], x[:, lib.tensor([True, False, True])], x[None, x > 4].shape]
True and False: x = lib.arange(3); [x[True], x[False].shape, x[..., True].shape, x[None, True].shape]
views by ints: x = lib.zeros(2, 2); x[0, 1].fill_(5.); x[1].add_(1.); x
negative and stepped: x = lib.arange(10); [x[-3:], x[::3], x[-1], x[2:-2:2], x[5:2], x[100:]]
numpy indices: import numpy as np; x = lib.arange(6).reshape(2, 3);
    [x[np.int64(1)], x[np.array([1, 0])], x[:, np.array([True, False, True])]]
iteration: [row.tolist() for row in lib.arange(6).reshape(3, 2)]
squeeze and unsqueeze: x = lib.zeros(1, 2, 1, 3);
    [x.squeeze().shape, x.squeeze(0).shape, x.squeeze(1).shape, x.squeeze((0, 2)).shape, x.unsqueeze(-1).shape,
    x.unsqueeze(2).shape]
expand: x = lib.arange(3).reshape(3, 1); [x.expand(3, 2), x.expand(2, -1, 4).shape, x.expand_as(lib.zeros(3, 2)).shape]
flatten: x = lib.zeros(2, 3, 4); [x.flatten().shape, x.flatten(1).shape, x.flatten(0, 1).shape, lib.tensor(3.).flatten().shape]
transpose and permute: x = lib.arange(6).reshape(1, 2, 3);
    [x.permute(2, 0, 1).shape, x.transpose(-1, 0).shape, x.mT.shape, x[0].T, x[0].t().stride()]
cat and stack: x = lib.tensor([[1., 2.]]);
    [lib.cat([x, x], 1), lib.cat([x, lib.tensor([[3, 4]])]), lib.stack([x, x], -1).shape, lib.cat([lib.zeros(0), x]).shape]
diagonal and diag: x = lib.arange(9).reshape(3, 3);
    [x.diagonal(), x.diagonal(1), lib.diagonal(x, -2), x.diag(), lib.diag(lib.tensor([1, 2]), 1)]
diagonal is a view: x = lib.zeros(2, 2); x.diagonal().fill_(1.); lib.diag(x).fill_(7.); x
picks and joins can be viewed: x = lib.arange(6).reshape(2, 3);
    [x[:, [2, 0]].view(-1), lib.cat([x.T, x.T]).view(-1), lib.stack([x.T, x.T]).view(-1), x.T[[0, 2]].view(-1)]
where: x = lib.tensor([1., -1.]);
    [lib.where(x > 0, x, 0.), lib.where(x > 0, 1, 2), lib.where(x > 0, lib.tensor([1, 2]), 2.5), lib.where(x > 0)]
reductions: x = lib.tensor([[1., 2.], [3., 5.]]);
    [x.sum((0, 1)), x.mean(1, keepdim=True), x.std(0), x.var((0, 1), correction=0), x.std(unbiased=False), x.max(1),
    x.argmax(), x.argmin(0), x.min(0, keepdim=True).values]
sums of integers and bools: [lib.tensor([True, True]).sum(), lib.tensor([200, 100], dtype=lib.uint8).sum(),
    lib.arange(3).sum(dtype=lib.float32)]
any and all: x = lib.tensor([[True, False], [True, True]]);
    [x.any(), x.all(), x.all(0), x.any(1, keepdim=True), lib.tensor([0., 2.]).any()]
numbers of NumPy: import numpy as np; x = leaf([1., 2.]);
    [x * np.float32(2), np.float64(2) * x, 1 + x, np.int64(3) - x, x / np.float64(2), (x ** np.int64(2)).sum(),
    np.float64(2) ** x]
comparisons: x = lib.tensor([1, 2, 3]); [x == 2, x != lib.tensor(2), 2 < x, x >= 2.5, (x > 1) & (x < 3), ~(x > 1), x == None,
    x == "a", x != [1]]
item and tolist: x = lib.tensor([[1.5]]); [x.item(), x.tolist(), float(x), int(x), bool(x), f'{x[0, 0]:.3f}', len(x), 1.5 in x]
linspace: [lib.linspace(-1, 1, 7), lib.linspace(0.1, 0.9, 11), lib.linspace(3, 10, 5), lib.linspace(0, 1, 1), lib.linspace(0,
    10, 4, dtype=lib.int64)]
arange: [lib.arange(5.), lib.arange(1, 2.5, 0.5), lib.arange(5, 0, -2), lib.arange(0, 1, 0.1), lib.arange(lib.tensor(3)),
    lib.arange(end=3)]
data of mixed numbers: import numpy as np;
    t = [lib.tensor([1, 2.5]), lib.tensor([True, 2]), lib.tensor([np.float64(1), 2]), lib.tensor([lib.tensor(1), 2.5]),
    lib.tensor([[]]), lib.tensor(np.int32(3)), lib.tensor([1], dtype=float)]; [[x, str(x.dtype).split('.')[1]] for x in t]
"""


def plain(value: Any) -> Any:
    """Convert tensors to nested lists and shapes to lists."""
    if hasattr(value, "tolist"):
        return plain(value.detach().tolist() if hasattr(value, "detach") else value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return repr(value) if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value


def session(source: str) -> Callable[[Any], Any]:
    """Return a case that runs the statements of `source` and returns the value of the last expression, or the error."""
    tree = ast.parse(source if isinstance(ast.parse(source).body[-1], ast.Expr) else f"{source}; None")
    statements = compile(ast.Module(tree.body[:-1], []), "<session>", "exec")
    last = compile(ast.Expression(tree.body[-1].value), "<session>", "eval")

    def run(lib: Any) -> Any:
        names: dict[str, Any] = {"lib": lib, "leaf": lambda values: lib.tensor(values, requires_grad=True)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(statements, names)
                return plain(eval(last, names))
            except Exception as error:  # noqa: BLE001  (the error is recorded)
                return {"raised": [type(error).__name__, str(error)]}
            finally:
                lib.set_grad_enabled(True)

    return run


CASES: dict[str, Callable[[Any], Any]] = {
    name: session(source)
    for name, _, source in (
        line.partition(": ") for line in SESSIONS.replace("\n    ", " ").strip().splitlines() if not line.startswith("#")
    )
}
