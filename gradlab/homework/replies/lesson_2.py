"""Lesson 2, a graph built as you run."""

arrows = {
    "Add → Mul": "the sum was made from the product",
    "Add → leaf x": "the sum's second input is `x` itself",
    "Mul → leaf x": "`x` is used twice, and has an arrow for each use",
    "Mul → leaf y": "`y` is an input of the product",
    "Mul → Add": "that is the way the numbers went; arrows go back, from the result",
    "leaf x → Mul": "that is the way the numbers went; a leaf has no arrows of its own",
}
branches = {
    (4, 4): "the branch that is not taken leaves nothing",
    (5, 5): "the branch that is not taken leaves nothing, and neither does the `if`",
    (2, 1): "the leaf has a node, too",
    (4, 2): "`x` is used twice, and is one leaf; `x > 0` leaves nothing",
    (4, 3): "`x > 0` leaves nothing: it has no derivative",
}
loop = {
    1: "it stands once in the code, and runs more often",
    5: "after five turns it is 96, and 96 < 100",
    7: "seven values, but the first of them was given",
    34: "that would be adding, 3 at a time",
}
power = {
    "MulBackward0": "that would be `x * x * x`, and two of them",
    "CubeBackward0": "there is one operation for every power; the 3 is noted in its node",
}
leaf = {
    "x": "it was made by nobody but you",
    "x * 2": "it was made by a product, and says so",
    "x.detach()": "the note is left out, so the memory begins here",
    "x.double()": "a conversion is an operation, and leaves a note",
    "gl.ones(3)": "a leaf need not require a gradient",
    "gl.ones(3) * 2": "nobody remembers, so there is no note",
}
middle = {
    "1": "that is what backward starts with, at `out`",
    "2": "backward computes it and hands it on, without keeping it",
    "12": "that is the value of `out`",
}
leaves = {
    "gl.rand(3)": "without a note; a leaf need not require a gradient",
    "gl.rand(3, requires_grad=True).sum()": "the sum is an operation, and its result is asked for here",
    "gl.rand(3).requires_grad_()": "to be told to remember is no operation",
    "gl.rand(3, requires_grad=True)[0]": "taking an element is an operation",
}
accumulate = {
    3: "`c` requires no gradient (and `a`, used twice, is one leaf)",
    1: "`a` and `b` both require a gradient",
    4: "one for each leaf that requires a gradient, not for each use",
}
update = {
    "k = k - 0.1 * k.grad": "that is a leaf, but under `no_grad` a result requires no gradient",
    "k = k.add(k.grad, alpha=-0.1)": "`add` without `_` makes a new tensor, which requires no gradient here",
}
