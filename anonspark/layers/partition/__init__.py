"""Layer 2: the distributed tree, cut on the cluster until every node fits one task.

- ``cut_tree`` holds the tree and finds each record's leaf.
- ``counting`` counts a batch of records into histograms.
- ``growing`` decides cuts from histograms alone: exact order statistics of all nodes at once.
- ``median_cut`` is Mondrian's rule in those terms, ``distance_cut`` that of Canon.
- ``predicting`` foresees cuts from a sample, ``brackets`` and ``bracket_pass`` count around them in
  one pass, and ``node_counts`` answers from that.
- ``distribution`` runs the counting on the cluster and hands every leaf to one task.
- ``lattice`` is layer 2 of full-domain recoding.
"""
