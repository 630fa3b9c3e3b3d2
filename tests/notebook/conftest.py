"""Fixture: the shell of `shells`, in which cells run."""

from shells import interactive, shell  # noqa: F401
