"""Record the run of a model on an input, draw it as a graph with the input on top, and summarize it in a table.

`run` records, `costs` has the rules for FLOPs, `forward_graph` the result for the user, `summary` the table.
"""
