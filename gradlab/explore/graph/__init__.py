"""Pictures of graphs: `graph`, `graphs`, and what they are made of."""

from gradlab.explore.graph.graphs import Graph, graph
from gradlab.explore.graph.several import Graphs, graphs

__all__ = ["Graph", "Graphs", "graph", "graphs"]
