"""The table of operations: facts about gradlab's primitives and PyTorch's nodes, by the names of their nodes."""

from gradlab.explore.operations.lookup import lookup, names_where, operation_name, operations

__all__ = ["lookup", "names_where", "operation_name", "operations"]
