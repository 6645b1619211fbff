"""Layer 2 of full-domain recoding: the search for one level of generalization per attribute.

- :mod:`~anonspark.full_domain.domain` numbers the groups of every level of every hierarchy.
- :mod:`~anonspark.full_domain.lattice` lists the nodes: one level for each attribute.
- :mod:`~anonspark.full_domain.tuples` holds the distinct tuples of a table at one node, on the
  driver; :mod:`~anonspark.full_domain.distributed` does where they are too many for it.
- :mod:`~anonspark.full_domain.objectives` says which of two nodes is better.
- :mod:`~anonspark.full_domain.search` finds the best one.
"""
