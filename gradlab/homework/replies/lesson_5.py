"""Lesson 5, the Jacobian, row by row."""

one_row = {
    (2, 3): "that is row 0; the weights count from 0, too",
    (0, 4): "that is row 2",
    (0, 1, 0): "those are the weights",
    (3, 2, 4): "that is column 1",
    (2, 1, 0): "that is column 0",
    (3, 9): "that is all the rows, added up",
}
two_rows = {
    (1, 2): "that is what a second `=` would leave",
    (2, 3): "that is the first row alone",
    (2, 3, 1, 2): "that is both rows, side by side",
}
path = {"Mul": "that makes output 0", "Add": "that makes output 1"}
weights = {(3, 9): "that is what is in `x.grad`", (0, 0, 0): "those would give nothing"}
mix = {(1, 2): "row 0 counts, too: a tenth of it", (3, 9): "that is the sum, with weights of 1"}
calls = {
    (5, 3, 5): "5 calls would be one for each input",
    (3, 5, 3): "a row belongs to an output",
    (5, 5, 3): "a row belongs to an output",
    (1, 3, 5): "one call gives one row",
}
first = {(2, 3): "so it was, after the first turn", (0, 4): "`backward` adds; it does not write"}
