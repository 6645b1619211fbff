"""The command ``anonspark``: arguments in, messages and exit codes out. It holds no logic."""
