"""Entry of ``spark-submit jobs/command.py COMMAND [ARGUMENT ...]``, as in ``anonspark COMMAND``."""

from __future__ import annotations

import sys

from anonspark.cli.application import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
