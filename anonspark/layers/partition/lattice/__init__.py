"""Layer 2 of full-domain recoding: the search for one level of generalization per attribute.

- ``domain`` numbers the groups of every level of every hierarchy.
- ``lattice`` lists the nodes: one level for each attribute.
- ``tuples`` holds the distinct tuples of a table at one node, on the driver, and ``distributed`` if
  they are too many for it.
- ``objectives`` compares nodes by their cost.
- ``search`` finds the best node, and reports the nodes that it considered.
"""
