"""Lesson 1, tensors that remember."""

who = {
    "t": "it says so itself, where it is made",
    "t * 2": "one parent that remembers is enough",
    "t > 0": "True and False do not move with `t`",
    "t.long()": "whole numbers do not move with `t`",
    "t.detach()": "the numbers are the same, the note is left out",
    "gl.arange(3)": "nobody asked it to remember",
    "t.sum().item()": "`t.sum()` is a tensor, `item()` makes a Python number of it",
    "t + gl.arange(3)": {"False": "one parent that remembers is enough; they need not all do"},
}
ints = {
    "a tensor of integers": "an integer cannot move a little",
    "a tensor of floats": "`requires_grad` asks for notes, it does not convert",
}
shared = {(1, 2, 3): "so it would be in a copy, `gl.tensor(array)`"}
rebuilt = {
    "0": "a gradient of 0 is computed; here none was",
    "1": "that is `again.grad`",
    "6": "`again` does not know that it comes from `u`",
    "an error": "nothing illegal was done: `again` is a leaf like any other",
}
runs = {
    (5, 5): "`q` is the same tensor in each run, and `backward` adds",
    (15, 15): "cell A makes a new `p` each time",
    (15, 5): "the other way round: which cell makes its tensor anew?",
}
has_grad = {
    "gl.zeros(2)": "nobody asked it to remember",
    "gl.randn(2, requires_grad=True)": "random numbers are numbers: it is a leaf that remembers",
    "gl.ones(2, requires_grad=True).detach()": "`s` is what `detach()` gave, not the tensor of ones",
    "gl.from_numpy(np.ones(2)).requires_grad_()": "floats, and told to remember before anything was computed",
    "gl.tensor([1, 2]).float().requires_grad_()": "the floats are told to remember, and no integer is",
}
raises = {
    "c.exp().detach().numpy()": "`detach()` is what the message asks for",
    "c.exp().tolist()": "a list is made of numbers, as by `item()`, and nobody takes it for a tensor",
}
reruns = {
    4: "cell M made a new `m`: what was added up before stays with the old one",
    3: "that is what the first `m` had",
    2: "that would be two runs of E on one `m`",
}
