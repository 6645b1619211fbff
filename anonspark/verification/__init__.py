"""Prove a release from its published files only, and attack it: :command:`anonspark verify`.

It imports nothing of the layers and the models.

- ``proof`` recounts the records, and compares every byte of the files.
- ``attacks`` matches a release with its original or with a population.
- ``claims`` says what a release is verified against, and lists what no record shows.
- ``opening`` opens a release with its claim, and ``audit`` runs proof, attacks and claims.
"""
