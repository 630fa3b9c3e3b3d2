"""Lesson 1, tensors that remember."""

who = {
    "t": "`requires_grad=True` is in the line that creates it",
    "t * 2": "one input that requires a gradient is enough",
    "t > 0": "True and False have no derivative with respect to `t`",
    "t.long()": "integers have no derivative with respect to `t`",
    "t.detach()": "it has the same numbers, without the history",
    "gl.arange(3)": "it was created without `requires_grad`",
    "t.sum().item()": "`t.sum()` is a tensor, and `item()` returns a Python number",
    "t + gl.arange(3)": {"False": "one input that requires a gradient is enough"},
}
ints = {
    "a tensor of integers": "an integer cannot change by a small amount",
    "a tensor of floats": "`requires_grad` does not convert the dtype",
}
shared = {(1, 2, 3): "that holds for a copy, `gl.tensor(array)`"}
rebuilt = {
    "0": "a gradient of 0 is computed, and here none was",
    "1": "that is `again.grad`",
    "6": "`again` has no history, and does not lead back to `u`",
    "an error": "no rule was broken: `again` is a leaf like any other",
}
runs = {
    (5, 5): "`q` is the same tensor in each run, and `backward` adds",
    (15, 15): "cell A creates a new `p` in each run",
    (15, 5): "it is the other way round: which cell creates a new tensor?",
}
has_grad = {
    "gl.zeros(2)": "it was created without `requires_grad`",
    "gl.randn(2, requires_grad=True)": "it is a leaf that requires a gradient, and its values do not matter",
    "gl.ones(2, requires_grad=True).detach()": "`s` is the result of `detach()`, not the tensor of ones",
    "gl.from_numpy(np.ones(2)).requires_grad_()": "it has floats, and required a gradient before anything was computed",
    "gl.tensor([1, 2]).float().requires_grad_()": "`requires_grad_` was called on the floats, not on the integers",
}
raises = {
    "c.exp().detach().numpy()": "the error message asks for `detach()`",
    "c.exp().tolist()": "a list holds Python numbers, as `item()` returns them",
}
reruns = {
    4: "cell M created a new `m`; the sum so far belongs to the old one",
    3: "that is the gradient of the first `m`",
    2: "that would be two runs of cell E on the same `m`",
}
