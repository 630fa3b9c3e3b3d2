"""Lesson 8, your own rule."""

single = {"passes": "the rule is right, but differences in float32 are too coarse to see it"}
slip = {"fails": "the rule is wrong beyond the limit, and it was not asked there"}
lie = {"passes": "the differences of a sign are 0, and the rule says 1"}
second = {27: "that is the first derivative", 6: "that is the third", 9: "that is x²", 54: "that is 2x³"}
falls = {"True": "a step goes where a parabola would have its bottom, and the valley is none"}
values = {
    1: "one output brings one g in; what goes out is one for each argument",
    2: "the whole number has a place, too: None",
    4: "`ctx` is no argument of `apply`",
}
blame = {
    "what backward says": "it rounds each number once",
    "both alike": "the one rounds, the other divides what rounding did by 0.000002",
}
sweeps = {
    1000: "that is all of H, one for each input",
    1001: "that is all of H, and the gradient before it",
    1: "one makes the gradient; how it changes along u is yet to come",
    1000000: "that is how many entries H has",
}
