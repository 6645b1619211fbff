"""Labels of plain values and intervals, read without a look at each: most that a release has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures
from anonspark.kernels.label_reading import read_plain_labels
from anonspark.release.regions import PublishedAttribute

# A part of what anonspark.release.regions reads: of other labels it is to be asked.
_NUMBER = r"-?\d{1,15}(?:\.\d{1,15})?"
_DAY = r"\d{4}-\d{2}-\d{2}"


def _pattern(value: str, divider: str) -> str:
    return rf"^(?:\[(?P<low>{value}){divider}(?P<high>{value})\]|(?P<both>{value}))$"


_OF_KIND = {
    "integer": (_pattern(_NUMBER, "-"), pa.float64()),
    "decimal": (_pattern(_NUMBER, "-"), pa.float64()),
    "float": (_pattern(_NUMBER, "-"), pa.float64()),
    "date": (_pattern(_DAY, "/"), pa.date32()),
}


def plain_intervals(labels: pa.Array, published: PublishedAttribute) -> tuple[Figures, Figures]:
    """Read the labels that are plain.

    Parameters
    ----------
    labels : pyarrow.Array
        Texts.
    published : PublishedAttribute
        Without a hierarchy.

    Returns
    -------
    low, high : float64 ndarray of shape (labels,)
        Ends, both included. Days since 1970 of dates. NaN where a label is another one, which is
        to be read by :func:`anonspark.release.regions.read_regions`.
    """
    low, high = np.full(len(labels), np.nan), np.full(len(labels), np.nan)
    # Numbers of 32 bits are rounded to these.
    if published.kind not in _OF_KIND or published.type == "float" or not len(labels):
        return low, high
    texts = labels.cast(pa.string())
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    text = np.frombuffer(content or b"", np.uint8)
    read_plain_labels(text, ends, published.kind == "date", low, high)
    others = np.isnan(low)
    if others.any():
        low[others], high[others] = _by_pattern(texts.filter(pa.array(others)), published)
    return low, high


def _by_pattern(labels: pa.Array, published: PublishedAttribute) -> tuple[Figures, Figures]:
    """Read labels whose numbers have many digits."""
    pattern, wanted = _OF_KIND[published.kind]
    found = pc.extract_regex(labels, pattern)
    both = pc.struct_field(found, "both")
    ends = [
        pc.if_else(pc.equal(both, ""), pc.struct_field(found, end), both) for end in ("low", "high")
    ]
    try:
        values = [end.cast(wanted) for end in ends]
    except pa.ArrowInvalid:
        # No day of the calendar.
        others = np.full(len(labels), np.nan)
        return others, others
    if wanted == pa.date32():
        values = [end.cast(pa.int32()).cast(pa.float64()) for end in values]
    low, high = (pc.fill_null(end, np.nan).to_numpy(zero_copy_only=False) for end in values)
    is_interval = low <= high
    return np.where(is_interval, low, np.nan), np.where(is_interval, high, np.nan)
