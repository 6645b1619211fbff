"""Layer 4: the figures of loss, per round, per class and per attribute, and the decision rules.

- :mod:`~anonspark.evaluate.metrics` sums up what the tasks measured.
- :mod:`~anonspark.evaluate.decision_rules` says whether outlier handling paid.
"""
