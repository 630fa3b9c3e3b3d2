"""Activations of `torch.nn.functional`, and those that are names of `torch` and methods too.

Gradients at NaN are left out where torch's own vectorised and scalar loops disagree about them (hardtanh, elu, the shrinks,
hardswish): values at NaN are compared under detach.
"""

from __future__ import annotations

from operators.spelling import B, I, N, U, V, rows_for

EVERY = """
    F.relu(x)
    F.relu6(x * 4)
    F.leaky_relu(x)
    F.leaky_relu(x, 0.2)
    F.leaky_relu(x, negative_slope=-1.5)
    F.leaky_relu(x, 3)
    F.elu(x)
    F.elu(x, 0.5)
    F.elu(x, alpha=2)
    F.selu(x)
    F.celu(x)
    # an alpha that float32 has exactly: torch's gradient rounds it
    F.celu(x, alpha=0.75)
    F.gelu(x)
    F.gelu(x, approximate="tanh")
    F.silu(x)
    F.mish(x)
    F.softplus(x)
    F.softplus(x, 3, 1)
    F.softplus(x, beta=0.5, threshold=1.5)
    F.softsign(x)
    F.hardtanh(x)
    F.hardtanh(x, -0.3, 0.6)
    F.hardtanh(x, min_val=-0.1, max_val=2)
    F.hardswish(x * 3)
    F.logsigmoid(x)
    F.tanhshrink(x)
    F.softshrink(x)
    F.softshrink(x, lambd=0.2)
    F.hardshrink(x)
    F.hardshrink(x, 0.2)
    F.threshold(x, 0.1, 20)
    F.threshold(x, threshold=-0.5, value=-7)
    F.rrelu(x)
    F.rrelu(x, 0.1, 0.5)
    F.sigmoid(x)
    F.tanh(x)
"""
TWINS = """
    F.relu(x.clone(), True)
    F.relu6(x.clone(), inplace=True)
    F.leaky_relu(x.clone(), 0.1, True)
    F.elu(x.clone(), inplace=True)
    F.selu(x.clone(), inplace=True)
    F.celu(x.clone(), 0.5, inplace=True)
    F.silu(x.clone(), inplace=True)
    F.mish(x.clone(), True)
    F.hardtanh(x.clone(), -1, 0.5, True)
    F.hardswish(x.clone(), True)
    F.threshold(x.clone(), 0.1, 3, True)
    F.rrelu(x.clone(), inplace=True)
    F.relu_(x.clone())
    F.elu_(x.clone())
    F.elu_(x.clone(), 0.3)
    F.selu_(x.clone())
    F.celu_(x.clone())
    F.celu_(x.clone(), 2.5)
    F.leaky_relu_(x.clone())
    F.leaky_relu_(x.clone(), 0.3)
    F.hardtanh_(x.clone())
    F.hardtanh_(x.clone(), -0.5, 0.2)
    F.threshold_(x.clone(), 0.1, 3)
    F.rrelu_(x.clone())
    y = x * 2; z = F.silu(y, inplace=True); y
    y = x * 2; z = F.leaky_relu(y[0], 0.1, inplace=True); y * 1
    F.elu_(x)
    F.relu(x, inplace=True)
    torch.relu_(x.clone())
    torch.selu_(x.clone())
    torch.celu_(x.clone(), alpha=2)
    torch.rrelu_(x.clone())
    torch.threshold_(x.clone(), 0.1, 3)
    torch.selu(x)
    torch.celu(x, alpha=0.5)
    torch.rrelu(x, 0.1, 0.2)
    torch.threshold(x, 0.1, 3)
    torch.hardshrink(x, 0.3)
    x.hardshrink()
    x.hardshrink(0.3)
"""
# At a bend, at infinities and far out. F.relu is with the arithmetic; hardsigmoid has no second derivative in torch.
BENDS = """
    F.relu6(x)
    F.leaky_relu(x, 0.1)
    F.elu(x, 1.5)
    F.celu(x, 2)
    F.selu(x)
    F.mish(x.clamp(-400, 400))
    F.silu(x.clamp(-400, 400))
    F.gelu(x.clamp(-400, 400))
    F.gelu(x.clamp(-400, 400), approximate="tanh")
    F.logsigmoid(x)
    F.softplus(x.clamp(max=50))
    F.softplus(x, 2, 1)
    F.hardtanh(x)
    F.hardtanh(x, -0.5, 0.5)
    F.hardswish(x.clamp(min=-400))
    F.softshrink(x)
    F.hardshrink(x)
    F.threshold(x, 0.5, 2)
    F.rrelu(x)
"""
AT_NAN = """
    F.relu6(x.detach())
    F.leaky_relu(x)
    F.elu(x.detach())
    F.selu(x.detach())
    F.celu(x.detach())
    F.gelu(x)
    F.gelu(x, approximate="tanh")
    F.silu(x)
    F.mish(x)
    F.softplus(x)
    F.softsign(x)
    F.hardtanh(x.detach())
    F.hardsigmoid(x.detach())
    F.hardswish(x.detach())
    F.logsigmoid(x)
    F.tanhshrink(x)
    F.softshrink(x.detach())
    F.hardshrink(x.detach())
    F.threshold(x, 0.1, 2)
    F.rrelu(x)
"""
ROWS = [
    *rows_for([{"x": N(3, 4)}, {"x": N()}, {"x": N(0, 3)}], EVERY),
    *rows_for({"x": N(3, 4)}, TWINS),
    *rows_for(
        {"x": N(70, 70)},
        """
        F.leaky_relu(x, -0.1)
        F.elu(x, 0.5)
        F.hardswish(x)
        F.softshrink(x)
        F.softplus(x, threshold=1)
        F.threshold(x, 0.1, 3)
        F.prelu(x, x[0, :1] * 0.2)
    """,
    ),
    *rows_for({"x": V([-6, -3, -1, -0.5, -0.0, 0, 0.5, 1, 3, 6, 20, 40, 1000, -1000, float("inf"), -float("inf")])}, BENDS),
    *rows_for(
        {"x": V([-3, 3, -4, 4, 0, 2.5])},
        """
        # in float32: torch multiplies by a sixth in float32 always
        x = x.detach().float().requires_grad_(); y = F.hardsigmoid(x); y.backward(torch.ones_like(y)); [y.detach(), x.grad]
        F.hardsigmoid(x.detach().clone(), inplace=True)
        F.hardsigmoid(x).grad_fn.name()
    """,
    ),
    *rows_for({"x": V([float("nan"), 1, -1])}, AT_NAN),
    *rows_for(
        [
            {"x": N(2, 3, 4), "w": U(3)},
            {"x": N(2, 3), "w": U(3)},
            {"x": N(5), "w": U(1)},
            {"x": N(2, 3), "w": U(1)},
            {"x": N(2, 3), "w": U()},
            {"x": N(), "w": U(1)},
            {"x": V([-1, 2, float("inf")]), "w": U(1)},
        ],
        """
        F.prelu(x, w)
        F.prelu(input=x, weight=w)
        torch.prelu(x, w)
        x.prelu(w)
    """,
    ),
    *rows_for(
        {"x": V([0.0, -1, 2, float("inf")]), "w": U(1)},
        """
        y = F.prelu(x, w); y.backward(torch.ones_like(y)); [y.detach(), x.grad, w.grad]
    """,
    ),
    *rows_for(
        [{"x": N(2, 3), "w": U(2)}, {"x": N(2, 3), "w": U(3, 1)}, {"x": N(), "w": U(3)}, {"x": N(3), "w": U(3)}], "F.prelu(x, w)"
    ),
    *rows_for(
        [{"x": N(4, 6)}, {"x": N(2, 0)}, {"x": N(2, 4, 6)}],
        """
        F.glu(x)
        F.glu(x, 0)
        F.glu(x, dim=1)
        F.glu(x, -2)
    """,
    ),
    *rows_for(
        [{"x": N(3, 3)}, {"x": N()}],
        """
        F.glu(x)
        F.glu(x, 7)
    """,
    ),
    *rows_for(
        [{"x": N(2, 3)}, {"x": N(2, 3, 2)}, {"x": N(4)}, {"x": N()}, {"x": N(2, 1, 3, 2)}],
        """
        F.softmax(x)
        F.softmin(x)
        F.log_softmax(x)
        F.softmax(x, -1)
        F.softmax(x, dim=0)
        F.softmin(x, dim=0)
        F.log_softmax(x, 0)
        F.softmax(x, 0, dtype=torch.float64)
        F.softmax(x, dim=9)
    """,
    ),
    *rows_for(
        [{"x": N(3, 4)}, {"x": N(2, 3, 2)}],
        """
        t = torch.manual_seed(3); F.gumbel_softmax(x)
        t = torch.manual_seed(3); F.gumbel_softmax(x, tau=0.5, dim=0)
        t = torch.manual_seed(3); F.gumbel_softmax(x, 2, hard=True)
        t = torch.manual_seed(3); F.gumbel_softmax(x, hard=True, dim=1)
        t = torch.manual_seed(3); F.gumbel_softmax(x, eps=1e-5)
        t = torch.manual_seed(3); y = F.rrelu(x, training=True); y.sum().backward(); [y.detach(), x.grad, y.grad_fn.name()]
        t = torch.manual_seed(3); y = F.rrelu(x, 0.3, 0.9, True); y.backward(torch.ones_like(y)); [y.detach(), x.grad]
        t = torch.manual_seed(3); y = F.rrelu_(x * 1, training=True); y.sum().backward(); [y.detach(), x.grad, y.grad_fn.name()]
        F.rrelu(x, 0.5, 0.1)
        F.rrelu(x, 0.5, 0.1, training=True)
    """,
    ),
    *rows_for(
        [{"x": I(3, 4)}, {"x": B(3, 4)}],
        EVERY
        + """
        F.hardsigmoid(x)
        F.hardtanh(x, -2.5, 3)
        F.threshold(x, 1.5, 2.5)
        F.glu(x)
        F.softmax(x, 0)
        F.softmax(x, 0, dtype=torch.float32)
        F.gumbel_softmax(x)
        F.prelu(x, x[0, :1])
        F.hardtanh(x.clone(), inplace=True)
        F.leaky_relu(x.clone(), inplace=True)
    """,
    ),
    *rows_for(
        {"x": N(3, 4)},
        """
        F.hardtanh(x, 2, 1)
        F.gelu(x, approximate="erf")
        F.softshrink(x, -1)
        F.celu(x, 0)
        F.hardshrink(x, -1)
        F.elu(x, torch.tensor(2.0))
        F.leaky_relu(x, "small")
        F.leaky_relu([1.0, 2.0])
        F.relu6([1.0])
        F.gelu([1.0])
        F.silu(3.0)
        F.hardtanh(None)
        F.prelu(x, 0.1)
        F.prelu(x, torch.tensor([1]))
        F.softplus(x, 0.0)
        F.elu(x, 0)
        F.elu(x, -1.5)
    """,
    ),
]
