"""Spark: the session, tasks, tables and files, and what its exceptions may say."""
