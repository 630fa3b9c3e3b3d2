"""The run of a model on an input: recorded as it happens, drawn as a graph with the input on top, and summed up in a table.

`run` records, `costs` has the rules for FLOPs, `forward_graph` is the user's object, `summary` the table.
"""
