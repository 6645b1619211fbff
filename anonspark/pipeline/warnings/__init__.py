"""Warn about facts that do not forbid a release but that its publisher should know.

Warnings are shown in the log, by ``check``, in the manifest and in the report. None of them holds a
value of the data, and none that is published reveals more about people than the release does.
"""
