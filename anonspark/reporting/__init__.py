"""The report: one HTML file that shows a release, in aggregates only.

Whatever is shown of people went through :mod:`anonspark.reporting.evidence`: counts below k and
what would reveal them are left out, and figures of the original are rounded to multiples of k.
"""
