"""Lesson 6, two products."""

exists = {
    "J 3 by 2, w has 3": "`J @ w` needs a number for each column, and there are 2",
    "J 3 by 2, w has 2": "`w @ J` needs a number for each row, and there are 3",
    "J 4 by 4, w has 4": "with 4 rows and 4 columns, w fits on either side",
    "J 2 by 5, w has 3": "there are 2 rows and 5 columns, and neither is 3",
}
along = {
    (2, 1, 0): "that is column 0; indices of u start at 0, too",
    (1, 2): "that is row 1, the result of `backward` with weights (0, 1, 0)",
    (2, 3): "that is row 0",
    (0, 4): "that is row 2",
    (0, 1): "that is u",
    (5, 3, 4): "that is the sum of both columns: u = (1, 1)",
}
best = {
    ("-16", "-16"): "so short a step is lost to rounding: x + εu is x or its neighbour",
    "float64": "a longer step has more curvature error, a shorter one more rounding error",
    "float32": "it has 7 digits instead of 16, so rounding errors are larger",
}
twice = {
    (0, 0, 0): "g · u is 0 for this v, but not for every v",
    (0, 0): "that is g",
    (0,): "that is g · u itself",
    (3, 9): "that is g for v = (1, 1, 1)",
    (3, 2, 4): "that is column 1 alone, for u = (0, 1)",
}
winner = {
    "1000 to 1": "one output is one row, and a backward sweep computes a whole row",
    "1 to 1000": "one input is one column, and a forward sweep computes a whole column",
    "50 to 50": "there are as many rows as columns",
}
colours = {
    998: "that is one for each row; but most of a row is zero",
    1000: "that is one for each column; but most of a column is zero",
    1: "one sweep would add neighbouring rows",
    2: "any two of three consecutive rows share a column",
    2994: "that is the number of entries that can be nonzero",
}
lengths = {(4, 7): "that is for vᵀJ", (7, 7): "the result has one for each row", (4, 4): "the vector has one for each column"}
fewest = {
    2000: "that is by rows, one for each output",
    1: "a forward sweep computes one column",
    10000: "that is the number of entries of J",
}
identity = {
    "A": "it holds for any matrix, whatever h is",
    "B": "with the same vector on both sides, a matrix and its transpose give the same number",
}
