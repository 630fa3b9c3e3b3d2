"""Lesson 9, the first step."""

start = {
    "0": "that is the loss of a model that is certain, and right",
    "1": "a loss of 1 takes a probability of 0.37",
    "27": "that is the number of letters: the loss is its logarithm",
}
spread = {
    "1": "that is the standard deviation of one product",
    "200": "that is the variance: the variances add up, and the standard deviation is its root",
}
slope = {
    "0.97": "that is the value; the slope is 1 minus its square",
    "0.5": "tanh has this slope at 0.71",
}
factor = {
    "1 / 30": "that would suit a sum that grows as 30: it grows as the root",
    "1 / 900": "then the sums would be close to 0, and the tanh close to a line",
}
ten = {
    "it has learned": "the loss of equal probabilities for 10 classes is 2.3",
    "its logits are too large": "large logits make the first loss larger than ln 10",
}
wider = {
    4: "the number of terms grows by 4, the variance too, and the standard deviation is its root",
    90: "that is how many inputs are added",
}
zero = {
    "nothing": "the loss is right: look at what goes back to `h`",
    "W2 gets no gradient": "its gradient is that of the logits times `h`, and neither is 0",
}
