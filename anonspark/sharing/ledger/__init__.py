"""The ledger: what was given to whom, in files that tell if one of them was changed.

It holds no value of the data but published labels and the conditions of requests: who is in which
class stands there under keyed hashes.
"""
