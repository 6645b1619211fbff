"""Layer 6: write the release aside, verify its files, then publish all of it with one rename.

What verifies them is :mod:`anonspark.verification`.

- :mod:`~anonspark.publish.paths` refuses output paths that endanger the input, and what is no
  release alone; :mod:`~anonspark.publish.layout` tells what may lie in one.
- :mod:`~anonspark.publish.writing` writes the published records.
- :mod:`~anonspark.publish.files` lists the files of a release, with a hash of each.
- :mod:`~anonspark.publish.left_out` writes what is told of records left out.
- :mod:`~anonspark.publish.schemas` and :mod:`~anonspark.publish.tables` are the metrics tables.
- :mod:`~anonspark.publish.originals` opens the tables that a release is compared with.
- :mod:`~anonspark.publish.manifest` writes and reads the manifest, and
  :mod:`~anonspark.publish.manifest_form` tells what has to be in it.
- :mod:`~anonspark.publish.committing` makes it the release.
- :mod:`~anonspark.publish.history` appends to the tables of all runs, and
  :mod:`~anonspark.publish.prometheus` tells of the last one; where they may lie is for
  :mod:`~anonspark.publish.metrics_paths`.
"""
