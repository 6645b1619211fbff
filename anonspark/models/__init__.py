"""The models: each takes a table and returns finished classes and the records left over.

- :mod:`~anonspark.models.model` is what the rounds know of a model.
- :mod:`~anonspark.models.blockwise` is the base of all models that cut a table into blocks on the
  cluster and finish each block in one task.
- :mod:`~anonspark.models.registry` lists the models. A new one is one module and one line there.
"""
