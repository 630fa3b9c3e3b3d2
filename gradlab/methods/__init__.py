"""The operators and methods of `Tensor`, in torch's spelling. They compute nothing: they hand over to the functions."""
