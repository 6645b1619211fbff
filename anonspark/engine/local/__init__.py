"""An engine in one process, without Java: threads map Arrow batches, and pyarrow reads files."""
