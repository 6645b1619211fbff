"""What a run warns of: nothing that forbids a release, but what who releases it should know.

Warnings are told in the log, by ``check``, in the manifest and in the report. None of them holds a
value of the data, and none that is published tells more of people than the release does.
"""
