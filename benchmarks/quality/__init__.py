"""What theses on learning from private tables print, and federated learning, beside ours.

Nothing of this is offered by the package. One runs as a module::

    PYTHONPATH=benchmarks .venv/bin/python -m quality.silos
"""
