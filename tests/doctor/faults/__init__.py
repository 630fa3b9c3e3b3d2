"""Cells with a planted fault, a module per family."""
