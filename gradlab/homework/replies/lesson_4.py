"""Lesson 4, what the graph keeps."""

exp = {
    "its argument": "that would be enough, but exp would have to be computed again",
    "both": "one of them is enough",
    "nothing": "its derivative depends on x, so it must save something",
}
again = {
    "x.sum()": "it passes the gradient to each element: nothing was saved, so nothing was freed",
    "x + x": "it passes the gradient on: nothing was saved, so nothing was freed",
    "x * x": "it needs its factors, which were freed",
    "x.exp()": "it needs its result, which was freed",
}
in_place = {
    "y = x.exp(); y += 1": "`exp` saves its result, which is `y`",
    "y = x * 2; y += 1": "`y` is a result, and the product saves its factors",
    "h = x * 2; y = h.sin(); h += 1": "`sin` saves its input, which is `h`",
    "h = x * 2; y = h + 1; h += 1": "`h` is overwritten, but no operation saved it",
}
cuts = {
    "y = q * s": {"9": "nothing is detached here: `s` has a gradient, too"},
    "y = q * s.detach()": {"27": "`s` is a constant here", "error": "one factor is detached; the other is `q` itself"},
    "y = q * s.data": {"27": "`s` is a constant here", "error": "one factor is detached; the other is `q` itself"},
    "y = q * s.item()": {"27": "a Python number has no history", "error": "one factor is a number; the other is `q` itself"},
    "no_grad around s = q ** 2": {
        "27": "a result computed in the block has no history",
        "error": "the product is computed after the block, and records `q`",
    },
    "no_grad around y = q * s": {
        "27": "the product is computed in the block, and is not recorded",
        "9": "the product is computed in the block, and records neither factor",
    },
}
late = {
    "about as long": "that holds with `detach`; here the graph grows with every step",
    "2 to 5 times": "the graph of step 200 is forty times as long as that of step 5",
}
again_too = {
    "x.mean()": "its rule divides by the number of elements: no values are saved",
    "x - 1": "it passes the gradient on: nothing was saved",
    "x.tanh()": "it saves its result, as exp does",
    "x / x": "its rule needs its inputs",
}
legal = {
    "y = x.sigmoid(); y *= 2": "the sigmoid saves its result, which is `y`",
    "h = x * 2; y = h * h; h += 1": "the product saves its factors, and both are `h`",
}
branch = {
    "u.sin() * u.cos().detach()": "that makes the cosine a constant",
    "(u.sin() * u.cos()).detach()": "that detaches both",
}
