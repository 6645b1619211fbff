"""The command ``anonspark``: arguments in, messages and exit codes out; no logic of its own."""

import anonspark.sharing  # noqa: F401 - lets its sections be read
