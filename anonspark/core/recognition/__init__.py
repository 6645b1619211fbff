"""What columns look like: names of persons, numbers of identity, addresses, codes.

- :mod:`~anonspark.core.recognition.checksums` tests numbers that carry check digits.
- :mod:`~anonspark.core.recognition.values` tells what values look like, by their form.
- :mod:`~anonspark.core.recognition.names` tells what a column's name says.
- :mod:`~anonspark.core.recognition.missing` lists words that stand for a missing value.
"""
