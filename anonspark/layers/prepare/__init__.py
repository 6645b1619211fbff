"""Layer 1: read the input once, check it, and describe how its quasi-identifiers become numbers.

- ``hierarchies`` reads the hierarchies and matches them with the values.
- ``inspection`` reports, after one pass, what is wrong with the values.
- ``sensitive`` numbers and counts the values of sensitive attributes.
- ``unit_counts`` counts people.
- ``snapshot`` stages the records that every later layer works on.
"""
