"""The command ``anonspark``: arguments in, messages and exit codes out; no logic of its own."""
