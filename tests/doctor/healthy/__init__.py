"""Cells in which nothing is wrong, a module per family."""
