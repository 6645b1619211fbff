"""The six layers, in the order of the data.

1. :mod:`~anonspark.layers.prepare` reads and checks the input.
2. :mod:`~anonspark.layers.partition` cuts it on the cluster.
3. :mod:`~anonspark.layers.outliers` separates what does not fit its group.
4. :mod:`~anonspark.layers.evaluate` measures what is lost.
5. :mod:`~anonspark.layers.generalize` says what is published of a class.
6. :mod:`~anonspark.layers.publish` writes the release aside and makes it the release.
"""
