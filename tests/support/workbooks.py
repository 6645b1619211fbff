"""Write small Excel workbooks, as far as tests need them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_CONTENT_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
# The second format is that of days, the third one that of points in time.
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}"><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/>'
    '<xf numFmtId="22"/></cellXfs></styleSheet>'
)

Cell = str | float | bool | date | None


def write_workbook(path: Path, sheets: Mapping[str, Sequence[Sequence[Cell]]]) -> Path:
    """Write the rows of each sheet, empty texts for cells with an error."""
    numbered = list(enumerate(sheets.items(), 1))
    listed = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, (name, _) in numbered
    )
    targets = "".join(
        f'<Relationship Id="r{n}" Type="{_OFFICE}/worksheet" Target="worksheets/s{n}.xml"/>'
        for n, _ in numbered
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", _CONTENT_TYPES)
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1" '
            f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{_RELATIONS}">{targets}</Relationships>',
        )
        archive.writestr("xl/styles.xml", _STYLES)
        for n, (_, rows) in numbered:
            written = "".join(
                f'<row r="{r}">{"".join(_cell(r, c, cell) for c, cell in enumerate(row))}</row>'
                for r, row in enumerate(rows, 1)
            )
            archive.writestr(
                f"xl/worksheets/s{n}.xml",
                f'<worksheet xmlns="{_MAIN}"><sheetData>{written}</sheetData></worksheet>',
            )
    return path


def _cell(row: int, column: int, cell: Cell) -> str:
    place = f'r="{chr(65 + column)}{row}"'
    match cell:
        case None:
            return ""
        case "":
            return f'<c {place} t="e"><v>#N/A</v></c>'
        case bool():
            return f'<c {place} t="b"><v>{int(cell)}</v></c>'
        case str():
            return f'<c {place} t="inlineStr"><is><t>{cell}</t></is></c>'
        case datetime():
            days = (cell - datetime(1899, 12, 30)).total_seconds() / 86_400
            return f'<c {place} s="2"><v>{days!r}</v></c>'
        case date():
            return f'<c {place} s="1"><v>{(cell - date(1899, 12, 30)).days}</v></c>'
        case _:
            return f"<c {place}><v>{cell!r}</v></c>"
