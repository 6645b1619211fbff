"""Values of Parquet's pages, walked as they are encoded, up to the last byte that is one."""

from __future__ import annotations

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import int64, types, uint8

_PAGE = types.Array(uint8, 1, "C", readonly=True)


@kernel(int64(_PAGE, int64, int64, int64, int64[::1]))
def count_runs(page, start, width, values, counts):
    """Count the numbers of runs, repeated or packed into bits ("RLE" in Parquet).

    Parameters
    ----------
    page : uint8 ndarray
        Decompressed.
    start : int
        Where the first run begins.
    width : int
        Bits of a number, 32 at most.
    values : int
        How many there are.
    counts : int64 ndarray
        To add to: of each number how often it is there.

    Returns
    -------
    int
        Where the last run ends. -1 where there are fewer, runs that hold more, others than zeros
        fill the last byte, or a number has no count.
    """
    position, size, left = start, len(page), values
    mask = (1 << width) - 1
    while left > 0:
        header, shift, byte = 0, 0, 128
        while byte >= 128:
            if position >= size or shift > 35:
                return -1
            byte = int64(page[position])
            position += 1
            header |= (byte & 127) << shift
            shift += 7
        packed = header & 1 == 1
        run = (header >> 1) * 8 if packed else header >> 1
        taken = (run // 8) * width if packed else (width + 7) // 8
        if run == 0 or run - left >= (8 if packed else 1) or position + taken > size:
            return -1
        buffer, bits = 0, 0
        end = position + taken
        for i in range(run if packed else 1):
            while bits < width and position < end:
                buffer |= int64(page[position]) << bits
                bits += 8
                position += 1
            number = buffer & mask if packed else buffer
            buffer >>= width
            bits -= width
            if i >= left:
                if number != 0:
                    return -1
            elif number >= len(counts):
                return -1
            else:
                counts[number] += 1 if packed else run
        position = end
        left -= run
    return position


@kernel(int64(_PAGE, int64, int64[::1]))
def sum_texts(page, start, counts):
    """Sum up the bytes of some texts.

    Parameters
    ----------
    page : uint8 ndarray
        Decompressed.
    start : int
        Where the first text begins. Four bytes before each say how long it is.
    counts : int64 ndarray
        How often each is there.

    Returns
    -------
    int
        Of all texts, as often as they are there. -1 where they do not end with the page.
    """
    position, size, total = start, len(page), 0
    for count in counts:
        if position + 4 > size:
            return -1
        length = 0
        for j in range(4):
            length |= int64(page[position + j]) << (8 * j)
        position += 4 + length
        if position > size:
            return -1
        total += length * count
    return total if position == size else -1
