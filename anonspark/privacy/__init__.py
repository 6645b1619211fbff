"""What a class has to satisfy beside its size: l-diversity, t-closeness and (alpha, k)-anonymity.

- :mod:`~anonspark.core.sensitive` numbers the values of sensitive attributes, without Spark.
- :mod:`~anonspark.core.criterion` is one criterion in words and bounds.
- :mod:`~anonspark.core.criteria` is what models ask whether a group may stand alone.
"""
