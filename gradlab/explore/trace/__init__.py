"""The trace: one plain record of what was computed and of one reverse sweep through it, which every explorer reads.

`data` is what it holds, `values` what is remembered of an array, `reading` how it is made from a recorded graph, and `recorder`
what is seen while a program runs. Reports, pictures, the doctor and live views read a `Trace`; nothing else walks a graph or
observes an engine.
"""
