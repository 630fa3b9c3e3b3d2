"""Lesson 7, training, and what goes wrong."""

rate = {
    "0.1": "it is the slowest of the three, and the safest",
    "0.45": "it steps across the valley each time, and lands closer to its floor",
}
forgetful = {
    "falls faster": "for a few steps it does: then it cannot stop",
    "falls as before": "so it would if `backward` wrote `.grad`; it adds",
    "explodes": "the rate is small: the steps pull back as well",
}
leaf = {
    "w = w - lr * w.grad": "a difference of two tensors was computed, and what was computed is no leaf",
    "the same under no_grad": "it is a leaf then, of which nobody asked for a gradient: there is no history, and no wish for one",
    "w -= lr * w.grad under no_grad": "the tensor stays the same one; only its numbers change",
}
pairs = {
    40: "one for each point is what was meant",
    80: "nothing is put side by side",
    1: "that is the shape of the mean",
    (40, 40): "that is the shape; how many numbers are in it?",
}
cut = {
    "neither": "then the loss would stay, and it falls",
    "both": "the loss falls, as if they did",
    "w2": "`detach` stands between the loss and the other one",
}
depth = {
    "about 1": "the factors would have to be 1; the slope of a sigmoid is at most a quarter",
    "about 1/100": "that is three or four layers' worth",
    "about 1/12": "layers do not share the gradient out: their factors are multiplied",
}
again = {
    "starts anew": "the line that makes the weights stands in another cell",
    "an error": "nothing is wrong with the second run",
}
curve = {
    "no zero_grad": "then it would swing, and not grow by the same factor",
    "(n, 1) against (n)": "then it would fall a little, and stay",
    "a cut": "then it would fall, or stay",
}
norms = {
    "gradients vanish": "they would be tiny, and there: None is no number",
    "no zero_grad": "then there would be too much in all of them",
    "the rate is too large": "the rate comes after the gradients",
}
which = {
    "C": "the weights go on from where the last run left them",
    "A and C": "the data were not changed by the training",
    "C, twice": "that is a longer training",
}
