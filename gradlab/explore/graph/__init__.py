"""Pictures of graphs: `graph`, and what they are made of."""

from gradlab.explore.graph.graphs import Graph, graph

__all__ = ["Graph", "graph"]
