"""The trace: a record of a computation and of one reverse sweep through its graph, as plain data. All explorers read it.

`data` defines a trace, `values` the recorded data of an array, `reading` builds a trace from a recorded graph, and `recorder`
records a program while it runs. Reports, pictures, the doctor and live views read a `Trace`; no other code walks a graph or
observes an engine.
"""
