"""Lesson 2, a graph built as you run."""

arrows = {
    "Add → Mul": "the product is an input of the sum",
    "Add → leaf x": "the sum's second input is `x` itself",
    "Mul → leaf x": "`x` is used twice, and each use has an arrow",
    "Mul → leaf y": "`y` is an input of the product",
    "Mul → Add": "that is the direction of the forward pass; arrows point back from the result",
    "leaf x → Mul": "that is the direction of the forward pass; no arrow starts at a leaf",
}
branches = {
    (4, 4): "the branch that does not run is not recorded",
    (5, 5): "neither the branch that does not run nor the `if` is recorded",
    (2, 1): "the leaf has a node, too",
    (4, 2): "`x` is used twice, and is one leaf; `x > 0` is not recorded",
    (4, 3): "`x > 0` is not recorded: it has no derivative",
}
loop = {
    1: "it appears once in the code, but runs more often",
    5: "after five iterations it is 96, and 96 < 100",
    7: "there are seven values, but the first is the input",
    34: "that would be for adding 3 each time",
}
power = {
    "MulBackward0": "that would be `x * x * x`, with two of them",
    "CubeBackward0": "all powers share one operation; its node stores the 3",
}
leaf = {
    "x": "you created it; no operation did",
    "x * 2": "a product computed it, and `grad_fn` names it",
    "x.detach()": "it has no history: the graph begins here",
    "x.double()": "a conversion is an operation, and is recorded",
    "gl.ones(3)": "a leaf need not require a gradient",
    "gl.ones(3) * 2": "no input requires a gradient, so nothing is recorded",
}
middle = {
    "1": "that is where backward starts, at `out`",
    "2": "backward computes it and passes it on, but does not store it",
    "12": "that is the value of `out`",
}
leaves = {
    "gl.rand(3)": "it has no history, and a leaf need not require a gradient",
    "gl.rand(3, requires_grad=True).sum()": "the sum is an operation, and this is its result",
    "gl.rand(3).requires_grad_()": "`requires_grad_` is not an operation",
    "gl.rand(3, requires_grad=True)[0]": "indexing is an operation",
}
accumulate = {
    3: "`c` requires no gradient (and `a`, used twice, is one leaf)",
    1: "`a` and `b` both require a gradient",
    4: "there is one for each leaf that requires a gradient, not for each use",
}
update = {
    "k = k - 0.1 * k.grad": "the result is a leaf, but under `no_grad` it requires no gradient",
    "k = k.add(k.grad, alpha=-0.1)": "`add` without `_` returns a new tensor, which requires no gradient here",
}
