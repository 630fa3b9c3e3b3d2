"""Lesson 5, the Jacobian, row by row."""

one_row = {
    (2, 3): "that is row 0; indices of weights start at 0, too",
    (0, 4): "that is row 2",
    (0, 1, 0): "those are the weights",
    (3, 2, 4): "that is column 1",
    (2, 1, 0): "that is column 0",
    (3, 9): "that is the sum of all rows",
}
two_rows = {
    (1, 2): "that is the result of `=` instead of `+=`",
    (2, 3): "that is the first row alone",
    (2, 3, 1, 2): "that is both rows, side by side",
}
path = {"Mul": "that computes output 0", "Add": "that computes output 1"}
weights = {(3, 9): "that is `x.grad`", (0, 0, 0): "those would give zeros"}
mix = {(1, 2): "a tenth of row 0 is added, too", (3, 9): "that is the sum, with weights of 1"}
calls = {
    (5, 3, 5): "5 calls would be one for each input",
    (3, 5, 3): "a row belongs to an output",
    (5, 5, 3): "a row belongs to an output",
    (1, 3, 5): "one call gives one row",
}
first = {(2, 3): "that is after the first iteration", (0, 4): "`backward` adds to `.grad`; it does not overwrite it"}
