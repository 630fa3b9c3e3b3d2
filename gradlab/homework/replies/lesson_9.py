"""Lesson 9, the first step."""

start = {
    "0": "that is the loss of a model that is certain and right",
    "1": "a loss of 1 needs a probability of 0.37",
    "27": "that is the number of letters: the loss is its logarithm",
}
spread = {
    "1": "that is the standard deviation of one product",
    "200": "that is the variance: variances add up, and the standard deviation is the square root",
}
slope = {
    "0.97": "that is the value; the slope is 1 minus its square",
    "0.5": "tanh has this slope at 0.71",
}
factor = {
    "1 / 30": "that would suit a sum that grows like 30, but it grows like the square root",
    "1 / 900": "then the sums would be close to 0, and tanh close to linear",
}
ten = {
    "it has learned": "the loss of equal probabilities for 10 classes is 2.3",
    "its logits are too large": "large logits make the first loss larger than ln 10",
}
wider = {
    4: "the number of terms and the variance grow by 4, and the standard deviation is the square root",
    90: "that is the number of inputs that are added",
}
zero = {
    "nothing": "the loss is right: check the gradient that goes back to `h`",
    "W2 gets no gradient": "its gradient is that of the logits times `h`, and neither is 0",
}
