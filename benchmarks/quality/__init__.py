"""What theses on learning from private tables print, and federated learning, beside ours.

Nothing of this is offered by the package. The programs run as modules::

    PYTHONPATH=benchmarks .venv/bin/python -m quality.silos
    PYTHONPATH=benchmarks .venv/bin/python -m quality.ml_utility
"""
