"""Lesson 3, the chain rule, one box at a time."""

cubes = {
    (0, 1, 8, 27, 64): "those are the cubes, not their derivatives",
    (0, 1, 4, 9, 16): "the 3 in front is missing",
    (0, 3, 6, 9, 12): "the exponent decreases by one, to the square",
    (0, 6, 12, 18, 24): "that is the second derivative",
    (1, 1, 1, 1, 1): "that is the gradient that the sum passes to the cubes, which have a rule, too",
    (100,): "that is the value of the sum",
    (90,): "that is the sum of the gradient; each element of `t` has its own",
}
by_hand = {
    "s": {
        0.25: "the 4 is missing: `v` grows by a quarter of the growth of `s`",
        1.0: "it was divided by 4 instead of multiplied",
    },
    "q": {
        (0.0125, 0.0125, 0.0125, 0.0125, 0.0125): "a sum passes the whole gradient to each element, not a fifth",
        (0.3125, 0.3125, 0.3125, 0.3125, 0.3125): "that is five times too much: each square receives the gradient once",
    },
    "d": {
        (-0.125, -0.125, 0, 0.125, 0.125): "the 2 of the square's derivative is missing",
        (0.25, 0.25, 0, 0.25, 0.25): "`d` has a sign",
        (-4, -4, 0, 4, 4): "that is the derivative of the square alone; multiply the upstream gradient by it",
        (0.5, 0.5, 0, 0.5, 0.5): "that uses the result `q` of the square; its input is `d`",
        (0.125, 0.125, 0.375, 0.625, 0.625): "that uses `x`; the input of the square is `d`",
    },
    "m": {1: "the shares of the five have signs", -1: "the shares of the five have signs"},
    "x": {(0, 0, 0, 0, 0): "that is the share through the mean; the subtraction passes a share, too"},
}
twice = {
    1: "that is the result of `=` instead of `+=`",
    2: "that is the gradient that reaches `b`",
}
replaced = {
    6: "that is with `+=`",
    2: "that is the share through `y` alone, which is the one replaced",
    3: "that is the gradient that reaches `k` with `+=`",
    8: "that is from running the rule of `k` twice",
}
bias = {
    "(3,), all 1": "each element of the bias is used in five rows",
    "(5, 3), all 1": "that is the gradient of the sum of both; the bias has three elements",
    "(5, 3), all 5": "a gradient has the shape of its tensor",
}
columns = {
    (1, 1): "that holds if the z-scores rise by 1, too; the mean also rises",
    (4, 4): "that holds if each z-score rises by 1; the mean also rises",
    (3, 3): "3 is the exponent, and it does not matter here; the mean also rises",
}
three_uses = {
    3: "that is the last use alone",
    5: "`p * p` uses it twice: each is a share",
    4: "that is `p * p` alone",
    10: "that is the value",
    12: "shares are added, not multiplied",
}
order = {
    "h f g": "`f` runs before `g` has passed its share",
    "g h f": "`g` runs before it has received a gradient",
}
shape = {
    (4, 5): "that is the shape of the sum; a gradient has the shape of its tensor",
    (1, 5): "those are the axes along which it was broadcast",
    (4,): "the axis of length 1 stays",
}
