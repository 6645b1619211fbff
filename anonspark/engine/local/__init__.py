"""An engine in one process, without Java: threads over Arrow batches, files by pyarrow."""
