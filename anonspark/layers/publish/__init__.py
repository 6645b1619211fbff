"""Layer 6: write the release aside, then publish all of it with one rename.

What verifies its files in between is :mod:`anonspark.verification`.

- ``paths`` refuses output paths that endanger the input, and what is no release alone.
- ``staging`` is the directory aside, ``run_state`` what of it a resumed run finds.
- ``division`` and ``writing`` write the published records, in files of ``parquet_files``.
- ``files`` lists the files of a release, with a hash of each. ``tables`` writes the metrics.
- ``committing`` makes it the release.
- ``history`` appends to the tables of all runs. Where they may lie is for ``paths``.
"""
