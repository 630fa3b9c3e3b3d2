"""Pictures of graphs: `graph`, and the modules that read, fold, lay out and draw them."""

from gradlab.explore.graph.front import graph
from gradlab.explore.graph.graphs import Graph

__all__ = ["Graph", "graph"]
