"""Layer 2: the distributed tree, cut on the cluster until every node fits one task.

- :mod:`~anonspark.partition.cut_tree` holds the tree and finds each record's leaf, without Spark.
- :mod:`~anonspark.partition.counting` counts a batch of records into histograms, without Spark.
- :mod:`~anonspark.partition.growing` decides cuts from histograms alone: exact order statistics
  of all nodes at once, without Spark.
- :mod:`~anonspark.partition.median_cut` is Mondrian's rule in those terms.
- :mod:`~anonspark.partition.distribution` runs the counting on the cluster and hands every leaf to
  one task.
"""
