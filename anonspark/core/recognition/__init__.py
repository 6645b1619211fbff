"""Recognize columns: names of persons, identity numbers, addresses, codes.

- :mod:`~anonspark.core.recognition.values` tests numbers that carry check digits.
- :mod:`~anonspark.core.recognition.values` recognizes values by their form.
- :mod:`~anonspark.core.recognition.names` recognizes columns by their name.
- :mod:`~anonspark.core.recognition.disguised` lists words that stand for a missing value.
"""
