"""What is wrong with a gradient, in words, with the line: findings from a trace and from what the notebook holds.

`case` is what is looked at, `findings` what is said, and a family of causes a function that takes a `Case` and
yields findings and remarks, each of which follows from numbers that it names as its evidence. `examine` asks them all.
"""
