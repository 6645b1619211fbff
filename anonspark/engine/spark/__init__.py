"""Spark as an engine: its session, tasks, tables and files, and errors without data."""
