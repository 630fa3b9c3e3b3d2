"""The graph's nodes, as `torch.autograd.graph` spells them."""
from gradlab.core.node import AccumulateGrad, Node

__all__ = ["AccumulateGrad", "Node"]
