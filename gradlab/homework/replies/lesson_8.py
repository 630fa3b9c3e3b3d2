"""Lesson 8, your own rule."""

single = {"passes": "the rule is right, but float32 differences are too inaccurate to show it"}
slip = {"fails": "the rule is wrong beyond the limit, but it was not tested there"}
lie = {"passes": "the difference quotients of a sign are 0, and the rule returns 1"}
second = {27: "that is the first derivative", 6: "that is the third", 9: "that is x²", 54: "that is 2x³"}
falls = {"True": "a step goes to the minimum of a parabola, and the valley is not one"}
values = {
    1: "one output means one g as input; the result has one value for each argument",
    2: "the integer has a place, too: None",
    4: "`ctx` is not an argument of `apply`",
}
blame = {
    "what backward says": "it rounds each number only once",
    "both alike": "one only rounds, the other divides rounding errors by 0.000002",
}
sweeps = {
    1000: "that is all of H, one for each input",
    1001: "that is all of H, and the gradient before it",
    1: "one computes the gradient; its change along u needs another",
    1000000: "that is the number of entries of H",
}
