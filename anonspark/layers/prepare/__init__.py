"""Layer 1: read the input once, check it, and describe how its quasi-identifiers become numbers.

- ``reading`` opens the input and finds each attribute's column.
- ``hierarchies`` reads the hierarchies and matches them with the values.
- ``inspection`` counts, in one pass, what can be wrong with the values.
- ``sensitive`` numbers and counts the values of sensitive attributes.
- ``snapshot`` stages the records that every later layer works on.
"""
