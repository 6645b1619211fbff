"""The six layers, in the order of the data.

1. :mod:`~anonspark.layers.prepare` reads and checks the input.
2. :mod:`~anonspark.layers.partition` cuts it on the cluster.
3. :mod:`~anonspark.layers.outliers` separates the records that do not fit their group.
4. :mod:`~anonspark.layers.evaluate` measures what is lost.
5. :mod:`~anonspark.layers.generalize` forms the published values of classes.
6. :mod:`~anonspark.layers.publish` stages the release, and publishes it by a rename.
"""
