"""Keep the ledger of releases and recipients, in files that reveal changes.

It holds no value of the data but published labels and the conditions of requests: who is in which
class stands there under keyed hashes.
"""
