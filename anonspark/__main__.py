"""``python -m anonspark``: the command line where its script is not on the path."""

from anonspark.cli.application import run_and_exit

if __name__ == "__main__":
    run_and_exit()
