"""What a class has to satisfy beside its size: l-diversity, t-closeness and (alpha, k)-anonymity.

- :mod:`~anonspark.privacy.sensitive` numbers the values of sensitive attributes, without Spark.
- :mod:`~anonspark.privacy.criterion` is one criterion in words and bounds.
- :mod:`~anonspark.privacy.criteria` is what models ask whether a group may stand alone.
"""
