"""Layer 5: what is published of a class, without Spark.

- :mod:`~anonspark.generalize.labels` writes single values, intervals and sets as text.
- :mod:`~anonspark.generalize.classes` turns the codes of finished classes into published columns
  and loss figures.
"""
