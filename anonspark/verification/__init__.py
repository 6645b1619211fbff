"""Prove a release from its published files only, and attack it: :command:`anonspark verify`.

It imports nothing of the layers and the models.

- ``claims`` says what a release is verified against.
- ``release_files`` looks at every file, of which ``contents`` and ``footers`` read the content.
- ``statements`` holds what is said of a release against counts.
- ``audit`` puts everything together.
- ``classes`` counts the classes that an attacker forms.
- ``sensitive``, ``measures`` and ``criteria`` measure what classes reveal about sensitive values.
- ``risk`` computes how likely records are re-identified.
- ``presence``, ``truthfulness`` and ``linkage`` hold a release against raw records.
- ``information`` measures the lost information, in bits.
"""
