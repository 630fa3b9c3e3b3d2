"""Lesson 4, what the graph keeps."""

exp = {
    "its argument": "that would do, and exp would have to be computed again",
    "both": "one of them is enough",
    "nothing": "its derivative is another one at each x, so it has to know something",
}
again = {
    "x.sum()": "it hands on what arrives, to each: nothing was kept, so nothing is gone",
    "x + x": "it hands on what arrives: nothing was kept, so nothing is gone",
    "x * x": "it needs its factors, and they were let go",
    "x.exp()": "it needs its result, and that was let go",
}
in_place = {
    "y = x.exp(); y += 1": "`exp` keeps its result, and that is `y`",
    "y = x * 2; y += 1": "`y` is a result, and the product keeps its factors",
    "h = x * 2; y = h.sin(); h += 1": "`sin` keeps its argument, and that is `h`",
    "h = x * 2; y = h + 1; h += 1": "`h` is overwritten, and no one has kept it",
}
cuts = {
    "y = q * s": {"9": "nothing is cut here: `s` has a gradient, too"},
    "y = q * s.detach()": {"27": "`s` is a constant now", "error": "one factor is cut; the other is `q` itself"},
    "y = q * s.data": {"27": "`s` is a constant now", "error": "one factor is cut; the other is `q` itself"},
    "y = q * s.item()": {"27": "a Python number has no history", "error": "one factor is a number; the other is `q` itself"},
    "no_grad around s = q ** 2": {
        "27": "what is made in the block has no history",
        "error": "the product is made after the block, and notes `q`",
    },
    "no_grad around y = q * s": {
        "27": "the product is made in the block, and notes nothing",
        "9": "the product is made in the block: it notes neither factor",
    },
}
late = {
    "about as long": "so it is with `detach`; here the graph grows with every step",
    "2 to 5 times": "the graph of step 200 is forty times as long as that of step 5",
}
again_too = {
    "x.mean()": "its rule divides by how many there are: no values are kept",
    "x - 1": "it hands on what arrives: nothing was kept",
    "x.tanh()": "it keeps its result, as exp does",
    "x / x": "its rule needs what it was made of",
}
legal = {
    "y = x.sigmoid(); y *= 2": "the sigmoid keeps its result, and that is `y`",
    "h = x * 2; y = h * h; h += 1": "the product keeps its factors, and both are `h`",
}
branch = {
    "u.sin() * u.cos().detach()": "that makes a constant of the cosine",
    "(u.sin() * u.cos()).detach()": "that cuts both",
}
