"""Advice about single operations: a program with an error, `!` the advice, `>` the program corrected as advised.

`|` continues a program on the next line. X is the library, under the user's name for it. If several corrections are advised,
there is a program for each. Every piece of code in the advice occurs literally in one of the programs; … stands for code that the
user fills in.
"""

SETUP = """
x = X.tensor([[1., 2., 3.], [4., 5., 6.]])
d = x.double()
n = X.tensor([[1, 2, 3], [4, 5, 6]])
b = n > 2
w = X.ones(2, 3, requires_grad=True)
s = X.tensor([[2., 1.], [1., 3.]])
F = X.nn.functional
"""

ROWS = r"""
-- promotion, and dtypes that an operation does not support
X.add(n, n, alpha=1.5)
! Convert the tensors: x.float().
> x = n; X.add(x.float(), x.float(), alpha=1.5)
X.addcmul(b, b, b)
! Call .int() first.
> X.addcmul(b.int(), b.int(), b.int())
X.addcdiv(n, n, n)
! Convert one of them: tensor1.float().
> tensor1 = n; X.addcdiv(n, tensor1.float(), n)
X.heaviside(x, d)
! Convert one of them: values.to(input.dtype).
> input, values = x, d; X.heaviside(input, values.to(input.dtype))
+b
! Call .int() first.
> +b.int()
n ** -1
! Call .float() first.
> n.float() ** -1
n.to(X.uint8).clamp(max=300)
! convert the tensor: x.long().
> x = n.to(X.uint8); x.long().clamp(max=300)
X.lerp(x, d, 0.5)
! Convert it: end.to(input.dtype).
> input, end = x, d; X.lerp(input, end.to(input.dtype), 0.5)
X.isclose(x, d)
! Convert one of the two: x.to(y.dtype).
> y = d; X.isclose(x.to(y.dtype), y)
X.where(n, x, x)
! Compare (x > 0), or call .bool().
> x = n; X.where((x > 0), x, x)
> X.where(n.bool(), x, x)
X.where(b.to(X.uint8), x, x)
! Use a boolean condition instead: condition.bool().
> condition = b.to(X.uint8); X.where(condition.bool(), x, x)
X.einsum('ij,ij', x, d)
! Convert one of them: x.float(), x.to(y.dtype).
> x, y = d, x; X.einsum('ij,ij', x.float(), y)
> y = d; X.einsum('ij,ij', x.to(y.dtype), y)
X.bincount(x[0])
! Give integers: .long().
> X.bincount(x[0].long())
X.histogram(n, 3)
! Call .float() first.
> X.histogram(n.float(), 3)
X.logcumsumexp(n, 0)
! Call .float() first.
> X.logcumsumexp(n.float(), 0)
X.diff(x[0, 0])
! Call .reshape(-1) first.
> X.diff(x[0, 0].reshape(-1))
X.trace(b)
! Call .int() or .float() first.
> X.trace(b.int())
> X.trace(b.float())
F.dropout(n, inplace=True)
! Call .float() first.
> F.dropout(n.float(), inplace=True)
X.frexp(n)
! Call .float() first.
> X.frexp(n.float())
X.cat([x[0, 0], x[0]])
! Use stack, or x.reshape(1).
> X.stack([x[0, 0], x[0, 0]])
> x, v = x[0, 0], x[0]; X.cat([x.reshape(1), v])
x @ d.T
! Convert one of them: x.float(), x.to(w.dtype).
> w, x = x.T, d; x.float() @ w
> w = d.T; x.to(w.dtype) @ w
X.baddbmm(x[None, :, :2], s[None], s[None].double())
! Convert one of them: x.float(), x.to(w.dtype).
> x, w = s[None].double(), s[None]; X.baddbmm(w, w, x.float())
> x, w = s[None], s[None].double(); X.baddbmm(x.to(w.dtype), x.to(w.dtype), w)
X.addmv(x[0, :2], s, s[0].double())
! Convert one of them: x.float().
> x, v = s[0].double(), x[0, :2]; X.addmv(v, s, x.float())
X.dot(x[0], d[0])
! Convert one of them: x.float(), x.to(w.dtype).
> x, w = d[0], x[0]; X.dot(x.float(), w)
> w = d[0]; x = x[0]; X.dot(x.to(w.dtype), w)
X.mm(b, b.T)
! Call .int() or .float() first.
> X.mm(b.int(), b.T.int())
> X.mm(b.float(), b.T.float())
X.outer(x, x)
! Flatten it: .flatten().
> X.outer(x.flatten(), x.flatten())
X.addmm(d[:, :2], s, s)
! Convert one of them: x.float(), x.to(w.dtype).
> x, w = d[:, :2], s; X.addmm(x.float(), w, w)
> x, w = s, d[:, :2]; X.addmm(w, x.to(w.dtype), x.to(w.dtype))
X.addr(n[:, :2], n[:, 0], n[0, :2], beta=.5)
! Convert the tensors: x.float().
> x = n; X.addr(x.float()[:, :2], x.float()[:, 0], x.float()[0, :2], beta=.5)
X.repeat_interleave(x[0], x[0])
! Call .long() first.
> X.repeat_interleave(x[0], x[0].long())
n.mean()
! Call .float() first.
> n.float().mean()
X.nanmean(n)
! Call .float() first.
> X.nanmean(n.float())
n.var()
! Call .float() first.
> n.float().var()
X.linalg.vector_norm(n)
! Call .float() first.
> X.linalg.vector_norm(n.float())
b.topk(1)
! Call .int() first.
> b.int().topk(1)
n.softmax(0)
! Call .float() first, or give dtype=.
> n.float().softmax(0)
> n.softmax(0, dtype=X.float32)
b.median()
! Call .int() first.
> b.int().median()
n.quantile(0.5)
! call .float().
> n.float().quantile(0.5)
X.linalg.inv(n[:, :2])
! Call .float() first.
> X.linalg.inv(n[:, :2].float())
X.linalg.inv(s.half())
! Call .float() first.
> X.linalg.inv(s.half().float())
X.linalg.solve_triangular(s, x[0, :2], upper=True)
! Use B.unsqueeze(-1) for a single vector.
> B = x[0, :2]; X.linalg.solve_triangular(s, B.unsqueeze(-1), upper=True)
X.linalg.solve(s, s.double())
! Convert one of them: x.float(), x.to(y.dtype).
> x = s.double(); X.linalg.solve(s, x.float())
> x, y = s, s.double(); X.linalg.solve(x.to(y.dtype), y)
X.linalg.matrix_norm(n.half(), 'nuc')
! Call .float() first.
> X.linalg.matrix_norm(n.half().float(), 'nuc')
X.linalg.vecdot(n, n)
! Call .float() first.
> X.linalg.vecdot(n.float(), n.float())
X.linalg.pinv(n)
! Call .float() on integers.
> X.linalg.pinv(n.float())
X.linalg.lstsq(n, n)
! Call .float() first.
> X.linalg.lstsq(n.float(), n.float())
x.float_power_(2)
! Call .double() first, or pow_.
> x.double().float_power_(2)
> x.pow_(2)
x.bfloat16()
! Use .half() or .float().
> x.half()
> x.float()
X.rand(2, 3).bernoulli_(n)
! Call p.float().
> p = b; X.rand(2, 3).bernoulli_(p.float())
F.prelu(x, d[0, :1])
! Convert one of them: weight.to(input.dtype).
> input, weight = x, d[0, :1]; F.prelu(input, weight.to(input.dtype))
F.gumbel_softmax(n)
! Call logits.float() first.
> logits = n; F.gumbel_softmax(logits.float())
F.hardtanh(b)
! Call .float() first.
> F.hardtanh(b.float())
F.relu(b)
! Call .float() first.
> F.relu(b.float())
F.scaled_dot_product_attention(n, n, n)
! Call .float() first.
> F.scaled_dot_product_attention(n.float(), n.float(), n.float())
F.cross_entropy(x, X.tensor([0, 1], dtype=X.int32))
! The target holds class indices: call target.long().
> target = X.tensor([0, 1], dtype=X.int32); F.cross_entropy(x, target.long())
F.nll_loss(n, n[0, :2])
! Call .float() first.
> F.nll_loss(n.float(), n[0, :2])
F.nll_loss(x, n[0, :2], d[0])
! Call weight.to(input.dtype).
> input, weight = x, d[0]; F.nll_loss(input, n[0, :2], weight.to(input.dtype))
F.conv1d(x[None], d[None])
! Convert one of them: x.float(), x.to(weight.dtype).
> weight, x = x[None], d[None]; F.conv1d(x.float(), weight)
> weight = d[None]; x = x[None]; F.conv1d(x.to(weight.dtype), weight)
F.conv1d(x[None], x[None], d[0, :1])
! Convert one of them: bias.to(x.dtype).
> bias = d[0, :1]; F.conv1d(x[None], x[None], bias.to(x.dtype))
F.pdist(n)
! Call .float() first.
> F.pdist(n.float())
X.cdist(n, n)
! Call .float() first.
> X.cdist(n.float(), n.float())
F.cosine_similarity(n, n)
! Call .float() on both.
> F.cosine_similarity(n.float(), n.float())
F.linear(x, d, d[:, 0])
! Convert one of them: x.float(), x.to(weight.dtype).
> x, weight = d, x; F.linear(x.float(), weight, weight[:, 0])
> weight = d; F.linear(x.to(weight.dtype), weight, weight[:, 0])
F.embedding(x, x)
! Indices come first, the table second. Convert floats with .long().
> F.embedding(n[0, :1], x)
> F.embedding(X.zeros(2).long(), x)
F.one_hot(n.int())
! Call .long() first.
> F.one_hot(n.int().long())
F.binary_cross_entropy(x / 9, d / 9)
! Call target.to(input.dtype).
> input, target = x / 9, d / 9; F.binary_cross_entropy(input, target.to(input.dtype))
F.binary_cross_entropy_with_logits(x, n)
! Call target.float().
> target = n; F.binary_cross_entropy_with_logits(x, target.float())
F.kl_div(n, n, reduction='sum')
! Call .float() first.
> F.kl_div(n.float(), n.float(), reduction='sum')
F.multi_margin_loss(x, x[:, 0])
! The target holds class indices: call target.long().
> target = X.ones(2); F.multi_margin_loss(x, target.long())
F.rms_norm(n, (3,))
! Call .float() first.
> F.rms_norm(n.float(), (3,))
F.layer_norm(n, (3,))
! Call .float() first.
> F.layer_norm(n.float(), (3,))
F.batch_norm(x, None, None, s.double()[0, 0].expand(3), training=True)
! Convert one of them: x.to(weight.dtype).
> weight = d[0]; F.batch_norm(x.to(weight.dtype), None, None, weight, training=True)
F.layer_norm(x, 3)
! Write (3,).
> F.layer_norm(x, (3,))
F.batch_norm(x, None, None)
! Pass it, or training=True.
> F.batch_norm(x, X.zeros(3), X.ones(3))
> F.batch_norm(x, None, None, training=True)
F.local_response_norm(x[None], 0)
! Use size=1 or more.
> F.local_response_norm(x[None], size=1)
F.pad(b[None], (1, 1), 'reflect')
! Call .int() first.
> F.pad(b[None].int(), (1, 1), 'reflect')
F.max_pool2d(b[None], 1)
! Call .float() first.
> F.max_pool2d(b[None].float(), 1)
F.grid_sample(n[None, None], X.zeros(1, 2, 2, 2, dtype=X.int64), align_corners=True)
! Call .float() first.
> F.grid_sample(n[None, None].float(), X.zeros(1, 2, 2, 2, dtype=X.int64).float(), align_corners=True)
F.grid_sample(x[None, None], X.zeros(1, 2, 2, 2))
! Please specify align_corners=True if the old behavior is desired.
> F.grid_sample(x[None, None], X.zeros(1, 2, 2, 2), align_corners=True)
F.upsample(x[None], 4)
! Use `nn.functional.interpolate` instead.
> X.nn.functional.interpolate(x[None], 4)
X.multinomial(n, 1)
! Call .float().
> X.multinomial(n.float(), 1)
X.multinomial(x, 5)
! Use replacement=True if an index may be drawn more than once.
> X.multinomial(x, 5, replacement=True)
X.multinomial(-x, 1)
! Pass probabilities or non-negative weights, such as the output of softmax.
> X.multinomial((-x).softmax(-1), 1)
X.randperm(3, dtype=X.bool)
! Use an integer dtype.
> X.randperm(3, dtype=X.int32)
n // 0
! Floats give inf or nan: call .float() first.
> n.float() // 0
X.nn.RNN(3, 2)(d)
! Convert input: input.to(X.float32), or convert model: model.to(X.float64)
> input = d; X.nn.RNN(3, 2)(input.to(X.float32))
> model = X.nn.RNN(3, 2); model.to(X.float64)(d)
X.nn.Parameter(n)
! call .float() first, or give requires_grad=False.
> X.nn.Parameter(n.float())
> X.nn.Parameter(n, requires_grad=False)
n.requires_grad = True
! write 1. instead of 1, or call .float() first.
> n = n.float(); n.requires_grad = True
n.requires_grad_()
! write 1. instead of 1, or call .float() first.
> n.float().requires_grad_()
X.tensor([1], requires_grad=True)
! write 1. instead of 1, or pass dtype=X.float32.
> X.tensor([1.], requires_grad=True)
> X.tensor([1], dtype=X.float32, requires_grad=True)
b - b
! Use the `^` or `logical_xor()` operator instead.
> b ^ b
> X.logical_xor(b, b)
1 - b
! use the `~` or `logical_not()` operator instead.
> ~b
> b.logical_not()
-b
! use the `~` or `logical_not()` operator instead.
> ~b
> b.logical_not()
F.silu(n)
! Call .float() first.
> F.silu(n.float())
X.erfinv(n, out=n.clone())
! Pass an out= of dtype X.float32.
> X.erfinv(n, out=X.empty(2, 3, dtype=X.float32))
-- arguments of the wrong type
X.exp([1., 2.])
! Make it a tensor first: X.tensor(…), or X.from_numpy(…) to share its memory.
> X.exp(X.tensor([1., 2.]))
> X.exp(X.from_numpy(np.ones(2)))
X.nn.Parameter([1., 2.])
! Convert it first: X.tensor(…).
> X.nn.Parameter(X.tensor([1., 2.]))
x[0] = ['a']
! Make it a tensor: X.tensor(…).
> x[0] = X.tensor([1., 2., 3.])
X.zeros(2, dtype='float32')
! Use a dtype such as X.float32.
> X.zeros(2, dtype=X.float32)
X.tensor({1., 2.})
! Sets and dicts have no order: pass list(…).
> X.tensor(list({1., 2.}))
X.tensor([x, x])
! to combine tensors use X.stack or X.cat.
> X.stack([x, x])
> X.cat([x, x])
X.tensor(x)
! it is recommended to use sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True)
> sourceTensor = x; sourceTensor.detach().clone(); sourceTensor.detach().clone().requires_grad_(True)
X.asarray([1.], copy=False)
! Remove copy=False.
> X.asarray([1.])
X.asarray(x, dtype=X.float64, copy=False)
! Remove copy=False.
> X.asarray(x, dtype=X.float64)
x[::-1]
! Use x.flip(dim) to reverse a dimension.
> dim = 0; x.flip(dim)
X.from_numpy(np.ones(3)[::-1])
! Copy it: array.copy().
> array = np.ones(3)[::-1]; X.from_numpy(array.copy())
X.from_numpy(np.broadcast_to(np.ones(1), 3))
! Copy the array first (array.copy())
> array = np.broadcast_to(np.ones(1), 3); X.from_numpy(array.copy())
X.tensor([np.ones(3)] * 3)
! consider converting the list to a single numpy.ndarray with numpy.array()
> import numpy; numpy.ndarray; X.tensor(numpy.array([np.ones(3)] * 3))
X.from_numpy(np.ones(3, '>f8'))
! Call array.astype(array.dtype.newbyteorder('=')).
> array = np.ones(3, '>f8'); X.from_numpy(array.astype(array.dtype.newbyteorder('=')))
X.from_numpy(np.array([1., 2.], object))
! Use numbers in rows of one length, or call array.astype(float).
> array = np.array([1., 2.], object); X.from_numpy(array.astype(float))
X.from_numpy(np.array(['1', '2']))
! If the text is numbers, call array.astype(float).
> array = np.array(['1', '2']); X.from_numpy(array.astype(float))
X.from_numpy(np.array([1, 2], np.uint16))
! Call array.astype(numpy.int64).
> import numpy; array = np.array([1, 2], np.uint16); X.from_numpy(array.astype(numpy.int64))
X.arange(3, dtype=X.float64, out=x)
! Remove dtype=: the result is written in the dtype of out.
> X.arange(3, out=X.empty(3))
X.range(0, 3)
! Instead, use gradlab.arange
> gradlab.arange(0, 4)
X.set_default_tensor_type(X.FloatTensor)
! please use gradlab.set_default_dtype() and gradlab.set_default_device() as alternatives.
> gradlab.set_default_dtype(gradlab.float32); gradlab.set_default_device('cpu')
X.LongTensor(x)
! Call .to(X.int64).
> X.LongTensor(x.to(X.int64))
X.einsum('ij')
! must specify the equation string and at least one operand
> X.einsum('ij', x)
x[X.ones(2, dtype=X.uint8)]
! please use a dtype gradlab.bool instead.
> x[X.ones(2, dtype=gradlab.bool)]
seq = [slice(0, 1), 0]; x[seq]
! use x[tuple(seq)] instead of x[seq].
> seq = [slice(0, 1), 0]; x[tuple(seq)]
x.index_put_((n[0, :1],), d[0])
! Call value.to(x.dtype).
> value = d[0]; x.index_put_((n[0, :1],), value.to(x.dtype))
x[0, 0][0]
! Use `tensor.item()` in Python to convert a 0-dim tensor to a number
> tensor = x[0, 0]; tensor.item()
X.from_dlpack(3)
! Expected an array of a library that supports the DLPack protocol, or the result of its __dlpack__()
> X.from_dlpack(np.ones(3)); X.from_dlpack(x.__dlpack__())
x.__dlpack__(stream=1)
! leave stream= out.
> x.__dlpack__()
float(x)
! Select one element by its index, or reduce it with .sum() or .mean().
> float(x[0, 0]); float(x.sum())
> float(x.mean())
bool(x)
! Use .any() or .all(), or X.where to choose element by element.
> bool(x.any())
> bool(x.all()); X.where(x > 0, x, 0.)
bool(x[:0])
! Use x.numel() > 0.
> x = x[:0]; x.numel() > 0
x.item()
! Use .tolist() to get all elements, or reduce it with .sum() or .mean().
> x.tolist(); x.sum().item()
> x.mean().item()
len(x[0, 0])
! Use .item() to get its value.
> x = x[0, 0]; x.item()
iter(x[0, 0])
! Use .item() to get its value.
> x = x[0, 0]; x.item()
x.view(3, 2).t().view(6)
! Use .reshape(...) instead.
> x.view(3, 2).t().reshape(6)
x[0, 0].adjoint()
! Consider using x.conj().
> x = x[0, 0]; x.conj()
x[None].T
! Consider `x.mT` to transpose batches of matrices or `x.permute(*gradlab.arange(x.ndim - 1, -1, -1))`
> x = x[None]; x.mT; x.permute(*gradlab.arange(x.ndim - 1, -1, -1))
X.cross(x, x)
! simply use gradlab.linalg.cross.
> gradlab.linalg.cross(x, x)
X.chain_matmul(s, s)
! Use gradlab.linalg.multi_dot instead
> gradlab.linalg.multi_dot([s, s])
X.meshgrid(x[0], x[0])
! Without it, indexing='ij' is used.
> X.meshgrid(x[0], x[0], indexing='ij')
X.scatter(x, 0, n[:1] * 0, x, reduce='add')
! Use gradlab.scatter_reduce instead for more reduction options.
> gradlab.scatter_reduce(x, 0, n[:1] * 0, x, 'sum')
X.finfo(X.int32)
! Use gradlab.iinfo to handle
> gradlab.iinfo(X.int32)
X.iinfo(X.float32)
! Use gradlab.finfo to handle
> gradlab.finfo(X.float32)
X.as_strided(x.T, (2,), (1,))
! Call .contiguous() first, and pass the strides of the copy.
> X.as_strided(x.T.contiguous(), (2,), (1,))
x[:0].amax()
! Specify the reduction dim with the 'dim' argument.
> x[:0].amax(dim=1)
X.linalg.inv(X.ones(2, 2))
! pinv() computes a pseudo-inverse, lstsq() a least-squares solution.
> X.linalg.pinv(X.ones(2, 2)); X.linalg.lstsq(X.ones(2, 2), s)
X.lstsq(s, s)
! Use gradlab.linalg.lstsq(A, B), with the arguments in this order.
> A = B = s; gradlab.linalg.lstsq(A, B)
x.contiguous(memory_format=X.preserve_format)
! Use X.contiguous_format.
> x.contiguous(memory_format=X.contiguous_format)
x.expand(4, 2, 3).add_(1)
! Please clone() the tensor before performing the operation.
> x.expand(4, 2, 3).clone().add_(1)
X.take(x, n[0], out=x.view(-1)[:3])
! Please clone() the tensor before performing the operation.
> X.take(x.clone(), n[0], out=x.view(-1)[:3])
-- history
X.exp(w, out=x)
! Omit out=, or compute inside `with X.no_grad():`.
> X.exp(w)
> with X.no_grad(): X.exp(w, out=x)
w.numpy()
! Use tensor.detach().numpy() instead.
> tensor = w; tensor.detach().numpy()
w.__dlpack__()
! use tensor.detach()
> tensor = w; tensor.detach().__dlpack__()
(w * 1).requires_grad = False
! use var_no_grad = var.detach().
> var = w * 1; var_no_grad = var.detach()
with X.inference_mode(): x = x * 1
| x._version
! Use a clone made outside inference_mode: x.clone()._version.
> with X.inference_mode(): x = x * 1
| x.clone()._version
with X.inference_mode(): v = x * 1
| v.requires_grad_()
! Clone it first: x.clone().requires_grad_().
> with X.inference_mode(): x = x * 1
| x.clone().requires_grad_()
with X.inference_mode(): v = x * 1
| v.add_(1)
! Write x = x.clone() first.
> with X.inference_mode(): x = x * 1
| x = x.clone(); x.add_(1)
with gradlab.inference_mode(): v = x * 1
| v * w
! use `gradlab.no_grad()` instead of `gradlab.inference_mode()`
> with gradlab.no_grad(): v = x * 1
| v * w
w.grad = d
! Assign grad.to(x.dtype).
> x, grad = w, d; x.grad = grad.to(x.dtype)
x.volatile = True
! Use `with gradlab.no_grad():` instead.
> with gradlab.no_grad(): w * 2
x.register_hook(print)
! Set requires_grad=True on it, or on a tensor it is computed from.
> x.requires_grad=True; x.register_hook(print)
x.retain_grad()
! Set requires_grad=True on a tensor it is computed from.
> x.requires_grad=True; x.retain_grad()
x.register_post_accumulate_grad_hook(print)
! Set requires_grad=True on it.
> x.requires_grad=True; x.register_post_accumulate_grad_hook(print)
(w * 1)[0].detach_()
! Use detach() instead.
> (w * 1)[0].detach()
import copy; copy.deepcopy(w * 1)
! Use .detach().clone() for a copy without history.
> (w * 1).detach().clone()
w.map_(x, max)
! Use var.detach().map_() instead.
> var = w; var.detach().map_(x, max)
(w * 2).set_(x)
! Call it inside `with X.no_grad():`, or copy_ the values.
> y = w * 2
| with X.no_grad(): y.set_(x)
> (w * 2).copy_(x)
x.set_(d)
! Convert it first: source.to(X.float32).
> source = d; x.set_(source.to(X.float32))
w.sum(dtype=X.int32)
! Call .detach() first.
> w.detach().sum(dtype=X.int32)
F.embedding(n % 2, w, sparse=True)
! Omit it to get a dense gradient.
> F.embedding(n % 2, w)
F.soft_margin_loss(x, w)
! Pass target.detach().
> target = w; F.soft_margin_loss(x, target.detach())
X.bincount(n[0], w[0]).sum().backward()
! Call detach() on its argument if no gradient is needed.
> X.bincount(n[0], w[0].detach())
(w // 2).sum().backward()
! Call detach() on its inputs.
> (w.detach() // 2).sum()
X.linalg.qr(X.ones(3, 2, requires_grad=True), mode='complete').Q.sum().backward()
! Use mode='reduced'.
> X.linalg.qr(X.ones(3, 2, requires_grad=True), mode='reduced').Q
-- the same advice in other functions
x.type_as(3)
! Make it a tensor first: X.tensor(…).
> x.type_as(X.tensor(3))
X.histc(n)
! Call .float() first.
> X.histc(n.float())
X.addbmm(s, s[None], s[None].double())
! Convert one of them: x.float(), x.to(w.dtype).
> x, w = s[None].double(), s; X.addbmm(w, w[None], x.float())
> x, w = s, s.double(); X.addbmm(x.to(w.dtype), w[None], w[None])
F.conv1d(d[None], x[None], x[0, :1])
! Convert one of them: x.float(), x.to(weight.dtype).
> x, weight = d[None], x[None]; F.conv1d(x.float(), weight, weight[0, 0, :1])
> x, weight = x[None], d[None]; F.conv1d(x.to(weight.dtype), weight, weight[0, 0, :1])
b.argmax()
! Call .int() first.
> b.int().argmax()
X.baddbmm(s.double()[None], s[None], s[None])
! Convert one of them: x.float(), x.to(w.dtype).
> x, w = s.double()[None], s[None]; X.baddbmm(x.float(), w, w)
> x, w = s[None], s.double()[None]; X.baddbmm(w, x.to(w.dtype), x.to(w.dtype))
x[None].t()
! See transpose.
> x[None].transpose(1, 2)
"""
