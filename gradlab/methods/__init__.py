"""Operators and methods of `Tensor`. They only call the functions of `gradlab.ops` and its siblings."""
