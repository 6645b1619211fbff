"""Proof from published files alone, and attacks on them; layer 6 and :command:`anonspark verify`.

Nothing here is shared with the code that anonymizes but the configuration's vocabulary and the
reading of files.

- :mod:`~anonspark.verification.claims` says what a release is verified against.
- :mod:`~anonspark.verification.release_files` looks at every file, of which
  :mod:`~anonspark.verification.contents` and :mod:`~anonspark.verification.footers` read the
  content.
- :mod:`~anonspark.verification.statements` holds what is said of a release against counts.
- :mod:`~anonspark.verification.audit` puts everything together.
- :mod:`~anonspark.verification.classes` counts the classes that an attacker forms.
- :mod:`~anonspark.verification.sensitive`, :mod:`~anonspark.verification.measures` and
  :mod:`~anonspark.verification.criteria` measure what classes tell of sensitive values.
- :mod:`~anonspark.verification.risk` tells how likely records are re-identified.
- :mod:`~anonspark.verification.regions` reads labels, and
  :mod:`~anonspark.verification.inference` tells how those of other tools are to be read.
- :mod:`~anonspark.verification.region_matching` brings raw records and regions together, for
  :mod:`~anonspark.verification.presence`, :mod:`~anonspark.verification.truthfulness` and
  :mod:`~anonspark.verification.linkage`.
"""
