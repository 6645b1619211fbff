"""Layer 4: the figures of loss, per round, per class and per attribute, and the decision rules.

- :mod:`~anonspark.evaluate.metrics` sums up what the tasks measured.
- :mod:`~anonspark.evaluate.decision_rules` says whether outlier handling paid.
- :mod:`~anonspark.evaluate.information` measures what is told less, in bits.
- :mod:`~anonspark.evaluate.gates` holds figures against their bounds,
  :mod:`~anonspark.evaluate.drift` against the last run, and
  :mod:`~anonspark.evaluate.utility_score` puts the loss in words.
"""
