"""Pictures of graphs: `graph`, and what they are made of."""

from gradlab.explore.graph.front import graph
from gradlab.explore.graph.graphs import Graph

__all__ = ["Graph", "graph"]
