"""Advice about objects with state: modules, optimizers, random numbers, files, custom Functions, transforms and explorers.

As in `advised_operations`: a program with an error, `!` the advice, `>` the program corrected as advised.
"""

SETUP = """
import io
x = X.tensor([[1., 2., 3.], [4., 5., 6.]])
d = x.double()
n = X.tensor([[1, 2, 3], [4, 5, 6]])
w = X.ones(2, 3, requires_grad=True)
F, nn, optim = X.nn.functional, X.nn, X.optim
fw = X.autograd.forward_ad
class Half(X.autograd.Function):
    forward = staticmethod(lambda ctx, x: x / 2)
    backward = staticmethod(lambda ctx, g: g / 2)
class Forgets(nn.Module):
    pass
"""

ROWS = r"""
-- modules
Forgets()(x)
! Define `def forward(self, x):` in the class.
> class Module(nn.Module):
|     def forward(self, x): return x
| Module()(x)
class Module(nn.Module):
|     def __init__(self): self.w = nn.Parameter(x)
| Module()
! Begin __init__ with super().__init__().
> class Module(nn.Module):
|     def __init__(self): super().__init__(); self.w = nn.Parameter(x)
| Module()
class Module(nn.Module):
|     def __init__(self): self.l = nn.Linear(2, 2)
| Module()
! Begin __init__ with super().__init__().
> class Module(nn.Module):
|     def __init__(self): super().__init__(); self.l = nn.Linear(2, 2)
| Module()
nn.Linear(2, 2).load_state_dict([1])
! Pass the result of model.state_dict() or X.load().
> model = nn.Linear(2, 2); nn.Linear(2, 2).load_state_dict(model.state_dict())
| X.save(model.state_dict(), f := io.BytesIO()); f.seek(0); model.load_state_dict(X.load(f))
nn.utils.clip_grad_norm([w], 1.)
! is now deprecated in favor of `gradlab.nn.utils.clip_grad_norm_`.
> gradlab.nn.utils.clip_grad_norm_([w], 1.)
w.grad = w.detach() / 0; nn.utils.clip_grad_norm_([w], 1., error_if_nonfinite=True)
! set `error_if_nonfinite=False`
> w.grad = w.detach() / 0; nn.utils.clip_grad_norm_([w], 1., error_if_nonfinite=False)
nn.init.normal(x)
! is now deprecated in favor of `nn.init.normal_`.
> nn.init.normal_(x)
-- optimizers
optim.SGD(w, lr=.1)
! Put it in a list: [w].
> optim.SGD([w], lr=.1)
optim.SGD([w * 2], lr=.1)
! pass those to the optimizer, or p.detach().requires_grad_().
> optim.SGD([w], lr=.1); p = w * 2; optim.SGD([p.detach().requires_grad_()], lr=.1)
optim.SGD([w], lr=.1, differentiable=True)
! write the step as an expression: w = w - lr * g.
> lr, g = .1, X.autograd.grad(w.sum(), w, create_graph=True)[0]; w = w - lr * g
o = optim.SGD([w], lr=.1); s = optim.lr_scheduler.StepLR(o, 1); o.step(); s.step(0)
! Please use `scheduler.step()` to step the scheduler.
> o = optim.SGD([w], lr=.1); scheduler = optim.lr_scheduler.StepLR(o, 1); o.step(); scheduler.step()
o = optim.SGD([w], lr=.1); s = optim.lr_scheduler.StepLR(o, 1); s.step()
! you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.
> optimizer = optim.SGD([w], lr=.1); lr_scheduler = optim.lr_scheduler.StepLR(optimizer, 1); optimizer.step()
| lr_scheduler.step()
s = optim.lr_scheduler.StepLR(optim.SGD([w], lr=.1), 1); s.get_lr()
! please use `get_last_lr()`.
> s = optim.lr_scheduler.StepLR(optim.SGD([w], lr=.1), 1); s.get_last_lr()
-- data
X.utils.data.DataLoader([1, 2], num_workers=-1)
! use num_workers=0 to disable multiprocessing.
> X.utils.data.DataLoader([1, 2], num_workers=0)
X.utils.data.DataLoader([1, 2], prefetch_factor=2)
! set prefetch_factor to None.
> X.utils.data.DataLoader([1, 2], prefetch_factor=None)
next(iter(X.utils.data.DataLoader([[1], [1, 2]], batch_size=2)))
! Pass a collate_fn to the loader that combines samples of different sizes.
> next(iter(X.utils.data.DataLoader([[1], [1, 2]], batch_size=2, collate_fn=list)))
-- random numbers and files
X.set_rng_state(X.zeros(5056, dtype=X.uint8))
! use one returned by get_rng_state().
> X.set_rng_state(X.get_rng_state())
X.load(3)
! Please pre-load the data into a buffer like io.BytesIO and try to load from that.
> X.save(x, f := io.BytesIO()); X.load(io.BytesIO(f.getvalue()))
X.save(nn.Linear(1, 1), io.BytesIO())
! Save its state: x.state_dict().
> x = nn.Linear(1, 1); X.save(x.state_dict(), io.BytesIO())
-- custom Functions and hooks
class Two(X.autograd.Function):
|     @staticmethod
|     def forward(ctx, x): ctx.save_for_backward(x); return x
|     clear_saved_tensors_on_access = True
|     @staticmethod
|     def backward(ctx, g): ctx.saved_tensors; ctx.saved_tensors; return g
| Two.apply(w).sum().backward()
! or set clear_saved_tensors_on_access=False.
> class Two(X.autograd.Function):
|     @staticmethod
|     def forward(ctx, x): ctx.save_for_backward(x); return x
|     clear_saved_tensors_on_access=False
|     @staticmethod
|     def backward(ctx, g): ctx.saved_tensors; ctx.saved_tensors; return g
| Two.apply(w).sum().backward()
class Marks(X.autograd.Function):
|     @staticmethod
|     def forward(ctx, x): ctx.mark_dirty(x); return x.mul_(2)
|     backward = staticmethod(lambda ctx, g: 2 * g)
| Marks.apply(w)
! Call the Function on a copy (x.clone()), or inside `with X.no_grad():`.
> class Marks(X.autograd.Function):
|     @staticmethod
|     def forward(ctx, x): ctx.mark_dirty(x); return x.mul_(2)
|     backward = staticmethod(lambda ctx, g: 2 * g)
| x = w; Marks.apply(x.clone()).sum().backward()
> class Marks(X.autograd.Function):
|     @staticmethod
|     def forward(ctx, x): ctx.mark_dirty(x); return x.mul_(2)
|     backward = staticmethod(lambda ctx, g: 2 * g)
| with X.no_grad(): Marks.apply(w)
class Keyword(X.autograd.Function):
|     @staticmethod
|     def forward(ctx, x, *, y): return x + y
|     backward = staticmethod(lambda ctx, g: (g, g))
| Keyword.apply(w, y=w)
! Make it a positional parameter.
> class Keyword(X.autograd.Function):
|     @staticmethod
|     def forward(ctx, x, y): return x + y
|     backward = staticmethod(lambda ctx, g: (g, g))
| Keyword.apply(x, w)
with X.autograd.graph.saved_tensors_hooks(lambda x: x.mul_(2), lambda x: x): w.detach().requires_grad_().exp()
! Pack a modified copy instead: x.clone().
> with X.autograd.graph.saved_tensors_hooks(lambda x: x.clone().mul_(2), lambda x: x): w.detach().requires_grad_().exp()
-- gradients
X.autograd.backward(w.sum(), grad_variables=X.ones(()))
! Use `grad_tensors` instead.
> X.autograd.backward(w.sum(), grad_tensors=X.ones(()))
w.pow(2).sum().backward(create_graph=True)
! We recommend using autograd.grad when creating the graph to avoid this.
> X.autograd.grad(w.pow(2).sum(), w, create_graph=True)
X.autograd.grad(x.sum() + w.sum(), x.requires_grad_(False))
! Set requires_grad=True on it before computing the output.
> x = X.ones(2, requires_grad=True); X.autograd.grad(x.sum(), x)
X.autograd.grad(w.sum(), X.ones(2, requires_grad=True))
! Set allow_unused=True if this is the desired behavior. (Its gradient is then None; materialize_grads=True gives zeros.)
> X.autograd.grad(w.sum(), X.ones(2, requires_grad=True), allow_unused=True)
> X.autograd.grad(w.sum(), X.ones(2, requires_grad=True), materialize_grads=True)
X.autograd.gradcheck(X.exp, (d[:1].expand(2, 3).requires_grad_(),))
! You should call .contiguous on the input before passing it to gradcheck.
> X.autograd.gradcheck(X.exp, (d[:1].expand(2, 3).contiguous().requires_grad_(),))
class Noisy(X.autograd.Function):
|     forward = staticmethod(lambda ctx, x: x * 1)
|     backward = staticmethod(lambda ctx, g: g * (1 + 1e-5 * X.rand(2, 3)))
| X.autograd.gradcheck(Noisy.apply, (d.requires_grad_(),))
! pass `nondet_tol=<tol>` to gradcheck.
> class Noisy(X.autograd.Function):
|     forward = staticmethod(lambda ctx, x: x * 1)
|     backward = staticmethod(lambda ctx, g: g * (1 + 1e-5 * X.rand(2, 3)))
| X.autograd.gradcheck(Noisy.apply, (d.requires_grad_(),), nondet_tol=1e-3)
fw.make_dual(x, x)
! make sure to enter_dual_level() first.
> fw.enter_dual_level(); fw.make_dual(x, x); fw.exit_dual_level()
with fw.dual_level(): fw.make_dual(n, n)
! Call .float() first.
> with fw.dual_level(): fw.make_dual(n.float(), n.float())
with fw.dual_level(): tensor = fw.make_dual(x, x); fw.make_dual(tensor, x)
! Use unpack_dual(tensor).primal, which has no tangent.
> with fw.dual_level(): tensor = fw.make_dual(x, x); fw.make_dual(fw.unpack_dual(tensor).primal, x)
with fw.dual_level(): tangent = fw.make_dual(x, x); fw.make_dual(x, tangent)
! Use unpack_dual(tangent).primal, which has no tangent.
> with fw.dual_level(): tangent = fw.make_dual(x, x); fw.make_dual(x, fw.unpack_dual(tangent).primal)
with fw.dual_level(): X.exp(fw.make_dual(x, x), out=d.float())
! Omit out=.
> with fw.dual_level(): X.exp(fw.make_dual(x, x))
X.autograd.functional.jacobian(X.exp, x, create_graph=True, strategy="forward-mode", vectorize=True)
! Please either set `create_graph=False` or `strategy="reverse-mode"`.
> X.autograd.functional.jacobian(X.exp, x, create_graph=False, strategy="forward-mode", vectorize=True)
> X.autograd.functional.jacobian(X.exp, x, create_graph=True, strategy="reverse-mode", vectorize=True)
X.autograd.functional.jacobian(X.exp, x, strict=True, vectorize=True)
! Please either set `strict=False` or `vectorize=False`.
> X.autograd.functional.jacobian(X.exp, x, strict=False, vectorize=True)
> X.autograd.functional.jacobian(X.exp, x, strict=True, vectorize=False)
X.utils.checkpoint.checkpoint(X.exp, w)
! use_reentrant=False is recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True.
> X.utils.checkpoint.checkpoint(X.exp, w, use_reentrant=False)
> X.utils.checkpoint.checkpoint(X.exp, w, use_reentrant=True)
X.autograd.grad(X.utils.checkpoint.checkpoint(X.exp, w, use_reentrant=True).sum(), w)
! To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the `inputs` argument.
> X.autograd.grad(X.utils.checkpoint.checkpoint(X.exp, w, use_reentrant=False).sum(), w)
> X.utils.checkpoint.checkpoint(X.exp, w, use_reentrant=True).sum().backward(); inputs = ()
X.utils.checkpoint.checkpoint(X.exp, w, use_reentrant=True, debug=True)
! Passing `context_fn` or `debug` is only supported when use_reentrant=False.
> X.utils.checkpoint.checkpoint(X.exp, w, use_reentrant=False, debug=True); context_fn = None
a = np.ones(3); a.flags.writeable = False; X.autograd.gradcheck(X.exp, (X.from_numpy(a).requires_grad_(),))
! Pass a clone().
> a = np.ones(3); a.flags.writeable = False; X.autograd.gradcheck(X.exp, (X.from_numpy(a).clone().requires_grad_(),))
y = w * 1; z = y * y; y.detach_(); z.sum().backward()
! please use out-of-place `.detach()` instead.
> y = w * 1; z = y * y; y.detach(); z.sum().backward()
y = w.exp(); y.sum().backward(); y.grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: x)
! Specify retain_graph=True if you need to backward through the graph a second time
> y = w.exp(); y.sum().backward(retain_graph=True); y.grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: x)
(x * 2).sum().backward()
! set requires_grad=True on the input before computing.
> x.requires_grad=True; (x * 2).sum().backward()
x = w.exp(); x += 1; x.sum().backward()
! Write to a copy (x = x + 1 instead of x += 1), or after backward().
> x = w.exp(); x = x + 1; x.sum().backward()
> x = w.exp(); x.sum().backward(); x = x + 1
l = w.exp().sum(); l.backward(); l.backward()
! pass retain_graph=True to the earlier backward() or autograd.grad(), or add the losses and call it once.
> l = w.exp().sum(); l.backward(retain_graph=True); l.backward(); l = w.exp().sum()
| X.autograd.grad(l, w, retain_graph=True); l.backward()
> l = w.exp().sum(); (l + l).backward()
-- transforms
X.func.grad(lambda a: a)(x)
! Maybe you wanted to use the vjp or jacrev APIs instead?
> X.func.jacrev(lambda a: a)(x); X.func.vjp(lambda a: a, x)
X.func.vmap(lambda a, b: a * b, in_dims=(0, 0))(x, 2.)
! please use None as the respective in_dim
> X.func.vmap(lambda a, b: a * b, in_dims=(0, None))(x, 2.)
X.func.jvp(X.exp, x, (x,))
! it should be valid to call f(*primals).
> X.func.jvp(X.exp, (x,), (x,)); f, primals = X.exp, (x,); f(*primals)
m = nn.Linear(1, 1, bias=False); m.other = m.weight
| X.func.functional_call(m, {'weight': x[:1, :1], 'other': x[1:, 1:2]}, (x[:1, :1],))
! Consider using tie_weights=False
> m = nn.Linear(1, 1, bias=False); m.other = m.weight
| X.func.functional_call(m, {'weight': x[:1, :1], 'other': x[1:, 1:2]}, (x[:1, :1],), tie_weights=False)
X.func.vmap(lambda a: X.rand(2) * a[:2])(x)
! Please either use the 'same' or 'different' randomness flags on vmap
> X.func.vmap(lambda a: X.rand(2) * a[:2], randomness='same')(x)
| X.func.vmap(lambda a: X.rand(2) * a[:2], randomness='different')(x)
-- explorers
model, input = nn.Linear(3, 2), x; X.graph(model)
! so it needs an input: call graph(model, input) with the arguments
> model, input = nn.Linear(3, 2), x; X.graph(model, input)
X.graph(x)
! Call requires_grad_() on what it is computed from before computing it
> X.graph(x.requires_grad_() * 2)
X.jacobian(x * 2, x)
! Call x.requires_grad_() before the output is computed, or give
> x.requires_grad_(); X.jacobian(x * 2, x)
X.jacobian(X.exp, n)
! Convert it first, for example with .float()
> X.jacobian(X.exp, n.float())
X.jacobian(x, w)
! Call requires_grad_() on the inputs first
> X.jacobian(w * 2, w.requires_grad_())
X.jacobian(lambda a: a.detach(), x)
! The function must compute it from its arguments by differentiable operations
> X.jacobian(lambda a: a * 2, x)
X.hessian(lambda a: a * 2, x)
! Differentiate its .sum(), or one of its el
> X.hessian(lambda a: (a * 2).sum(), x)
X.jacobian(X.exp, x, plan=X.jacobian(X.exp, x).plan, method='rows')
! plan= includes the method and the pattern, so do not pass method or sparsity with it
> X.jacobian(X.exp, x, plan=X.jacobian(X.exp, x).plan)
X.jacobian(X.exp, x, key='f')
! pass resume=True and out= with it
> import tempfile, pathlib
| X.jacobian(X.exp, x, key='f', resume=True, out=np.memmap(pathlib.Path(tempfile.mkdtemp(), 'J'), 'f4', 'w+', shape=(6, 6)))[:]
X.jacobian(w * 2, w, resume=True, out=np.zeros((6, 6), 'f4'))
! Give jacobian the function that computes it
> import tempfile, pathlib
| X.jacobian(lambda w: w * 2, w, resume=True, out=np.memmap(pathlib.Path(tempfile.mkdtemp(), 'J'), 'f4', 'w+', shape=(6, 6)))[:]
X.jacobian(X.exp, x, resume=True, out=np.zeros((6, 6), 'f4'))
! resume=True takes out=np.memmap(file, dtype, mode, shape=...), mode 'w+' for a new file and 'r+' to go on with one
> import tempfile, pathlib; file, dtype, mode = pathlib.Path(tempfile.mkdtemp(), 'J'), 'f4', 'w+'
| X.jacobian(X.exp, x, resume=True, out=np.memmap(file, dtype, mode, shape=(6, 6)))[:]
| X.jacobian(X.exp, x, resume=True, out=np.memmap(file, dtype, 'r+', shape=(6, 6)))[:]
l = w.exp().sum(); l.backward(); X.step_through(l)
! Compute l again, or keep the graph: l.backward(retain_graph=True).
> l = w.exp().sum(); l.backward(retain_graph=True); X.step_through(l)
| l = w.exp().sum(); X.step_through(l)
l = w.exp().sum(); steps = X.step_through(l); steps.close(); steps.again(2.)
! Call step_through(l) again.
> l = w.exp().sum(); X.step_through(l).again(2.)
X.formula(Half.apply(w).grad_fn)
! read Half.backward.
> Half.backward
X.jacobian(lambda x: x.flip(0), x[0], sparsity=np.eye(3))[:]
! or give a pattern with all of its entries
> X.jacobian(lambda x: x.flip(0), x[0], sparsity=np.eye(3)[::-1])[:]
X.jacobian(X.exp, x, out=np.lib.stride_tricks.as_strided(np.zeros(6, 'f4'), (6, 6), (0, 4)))
! give an array with its own memory
> X.jacobian(X.exp, x, out=np.zeros((6, 6), 'f4'))[:]
a = np.zeros((6, 6), 'f4'); X.jacobian(X.exp, X.from_numpy(a[0]), out=a)
! which would be overwritten; give an array with its own memory
> a = np.zeros((6, 6), 'f4'); X.jacobian(X.exp, X.from_numpy(a[0]), out=np.zeros((6, 6), 'f4'))[:]
X.playground(lambda x: x * X.ones(2), x=(0., 1.))
! Reduce it: .sum(), .mean().
> X.playground(lambda x: (x * X.ones(2)).sum(), x=(0., 1.))
> X.playground(lambda x: (x * X.ones(2)).mean(), x=(0., 1.))
X.playground(lambda x: float(x) ** 2, x=(0., 1.))
! use X.sin and similar functions.
> X.playground(lambda x: X.sin(x), x=(0., 1.))
"""
