"""Lesson 7, training, and what goes wrong."""

rate = {
    "0.1": "it is the slowest of the three, and the safest",
    "0.45": "it steps across the valley each time, and lands closer to its floor",
}
forgetful = {
    "falls faster": "it does for a few steps, but then it overshoots",
    "falls as before": "that would hold if `backward` overwrote `.grad`; it adds",
    "explodes": "the rate is small, and later steps go back",
}
leaf = {
    "w = w - lr * w.grad": "the result of a subtraction is not a leaf",
    "the same under no_grad": "the result is a leaf without a history, and it does not require a gradient",
    "w -= lr * w.grad under no_grad": "the tensor stays the same; only its numbers change",
}
pairs = {
    40: "one for each point is the intention, but the shapes broadcast",
    80: "nothing is concatenated",
    1: "that is the shape of the mean",
    (40, 40): "that is the shape; how many numbers does it hold?",
}
cut = {
    "neither": "then the loss would not change, but it falls",
    "both": "the loss falls as if they did",
    "w2": "`detach` is between the loss and the other one",
}
depth = {
    "about 1": "the factors would have to be 1; the slope of a sigmoid is at most a quarter",
    "about 1/100": "that corresponds to three or four layers",
    "about 1/12": "layers do not divide the gradient: their factors are multiplied",
}
again = {
    "starts anew": "the line that creates the weights is in another cell",
    "an error": "the second run is valid",
}
curve = {
    "no zero_grad": "then it would oscillate, not grow by the same factor",
    "(n, 1) against (n)": "then it would fall a little, and stop",
    "a cut": "then it would fall, or not change",
}
norms = {
    "gradients vanish": "they would be tiny numbers, not None",
    "no zero_grad": "then all of them would be too large",
    "the rate is too large": "the rate is applied after the gradients are computed",
}
which = {
    "C": "the weights continue from the last run",
    "A and C": "the data were not changed by the training",
    "C, twice": "that is a longer training",
}
