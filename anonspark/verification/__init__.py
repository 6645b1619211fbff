"""Proof of privacy criteria from published files alone.

Nothing here shares code with the kernels that anonymize: what a release promises is measured a
second time, in another way.

- :mod:`~anonspark.verification.measures` measures the values of a sensitive attribute in each
  class.
- :mod:`~anonspark.verification.regions` reads published quasi-identifiers back as regions.
- :mod:`~anonspark.verification.presence` bounds how sure an attacker can be that somebody of a
  population is in the release.
"""
