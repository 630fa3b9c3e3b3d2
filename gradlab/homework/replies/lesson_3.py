"""Lesson 3, the chain rule, one box at a time."""

cubes = {
    (0, 1, 8, 27, 64): "those are the cubes, not how fast they grow",
    (0, 1, 4, 9, 16): "the 3 in front is missing",
    (0, 3, 6, 9, 12): "the power goes down by one, to the square; it does not go away",
    (0, 6, 12, 18, 24): "that is the second derivative",
    (1, 1, 1, 1, 1): "that is what the sum hands to the cubes; they have a rule, too",
    (100,): "that is the value of the sum",
    (90,): "that is the gradient, added up; each number of `t` has its own",
}
by_hand = {
    "s": {
        0.25: "the 4 is missing; `v` rises by a quarter of what `s` rises by",
        1.0: "it was divided by 4, not multiplied",
    },
    "q": {
        (0.0125, 0.0125, 0.0125, 0.0125, 0.0125): "a sum hands all of it to each, not a fifth",
        (0.3125, 0.3125, 0.3125, 0.3125, 0.3125): "that is five times as much: each square gets what arrived, once",
    },
    "d": {
        (-0.125, -0.125, 0, 0.125, 0.125): "the 2 of the square's derivative is missing",
        (0.25, 0.25, 0, 0.25, 0.25): "`d` has a sign",
        (-4, -4, 0, 4, 4): "that is the derivative of the square alone; what has arrived is multiplied by it",
        (0.5, 0.5, 0, 0.5, 0.5): "that is with what the square gave, `q`; it was given `d`",
        (0.125, 0.125, 0.375, 0.625, 0.625): "that is with `x`; what was squared is `d`",
    },
    "m": {1: "the shares of the five have signs", -1: "the shares of the five have signs"},
    "x": {(0, 0, 0, 0, 0): "that comes by way of the mean; the minus hands on a share, too"},
}
twice = {
    1: "that is what `=` in place of `+=` would leave",
    2: "that is what arrives at `b`",
}
replaced = {
    6: "that is with `+=`",
    2: "that is the way by `y` alone, and that share is the one replaced",
    3: "that is what arrives at `k` with `+=`",
    8: "that is from calling `k` twice",
}
bias = {
    "(3,), all 1": "each number of the bias was used in five rows",
    "(5, 3), all 1": "that is what arrives at the sum of both; the bias has three numbers",
    "(5, 3), all 5": "a gradient has the shape of its tensor",
}
columns = {
    (1, 1): "that is so if the z-scores rise by 1, too; the mean rises along",
    (4, 4): "that is so if each z-score rises by 1; the mean rises along",
    (3, 3): "3 is the power, and that is not asked for; the mean rises along",
}
three_uses = {
    3: "that is the last use alone",
    5: "`p * p` uses it twice: each is a share",
    4: "that is `p * p` alone",
    10: "that is the value",
    12: "shares are added, not multiplied",
}
order = {
    "h f g": "`f` is asked before `g` has given its share",
    "g h f": "`g` is asked before anything has arrived there",
}
shape = {
    (4, 5): "that is the shape of the sum; a gradient has the shape of its tensor",
    (1, 5): "those are the places it was stretched to",
    (4,): "the 1 stays",
}
