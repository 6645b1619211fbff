"""Layer 2 of full-domain recoding: the search for one level of generalization per attribute.

- ``domain`` numbers the groups of every level of every hierarchy.
- ``lattice`` lists the nodes: one level for each attribute.
- ``tuples`` holds the distinct tuples of a table at one node, on the driver. ``distributed`` does
  where they are too many for it.
- ``objectives`` says which of two nodes is better.
- ``search`` finds the best one. ``watching`` reports the nodes that it considered.
- ``losses`` says what a node loses.
"""
