"""Where a table lies and how it is read, found by its name and its first bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from anonspark.config.input import format_of_name
from anonspark.engine.choice import Work, local_path
from anonspark.engine.files import Files, FilesError
from anonspark.engine.first_file import DamagedFileError, listed_files, read_beginning
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.managed_tables import require_plain_files, table_format
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.recognition import Recognized, format_of_files, recognize, require_csv
from anonspark.errors import ConfigurationError, DataError

_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}


@dataclass(frozen=True)
class Source:
    """A table, and how it is read.

    Parameters
    ----------
    path : str
        As the user wrote it.
    format : str
        Of Spark's data source.
    options : dict of str to str
        Of that format.
    notes : tuple of str
        What was recognized, for a person.
    is_recognized : bool
        Whether its files were looked into.
    """

    path: str
    format: str
    options: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    is_recognized: bool = True

    @property
    def work(self) -> Work:
        """What reading it takes, for the choice of an engine."""
        return Work((self.path,), (), (self.format,))

    def recognized(self, files: Files) -> Source:
        """Return it with the options that its files tell.

        Raises
        ------
        ConfigurationError
            If nobody can tell whether a CSV file has a header: column names are shown, and values
            must not be. If it is written in UTF-16.
        DataError
            If the files are empty, or no CSV; see
            :func:`anonspark.engine.recognition.require_csv`.
        """
        if self.is_recognized or self.format != "csv":
            return self
        found = recognize(files, [self.path], self.format, self.options, key="DATA")
        names = {name.lower() for name in self.options}
        header = found.header
        asks = header is None and "header" not in names
        require_csv(found, "DATA", [self.path], asks=asks)
        if asks:
            raise ConfigurationError(
                f"DATA: it cannot be told whether the first line of {self.path} "
                "names the columns; say it: --option header=true, or header=false, which calls "
                "them _c0, _c1 and so on"
            )
        told = {"header": "true" if header else "false"} | found.options
        options = {name: value for name, value in told.items() if name not in names} | self.options
        return replace(self, options=options, notes=_notes(found), is_recognized=True)

    @property
    def remedy_for_days(self) -> str:
        """What makes days of texts that are not written as 2026-01-31."""
        if self.format != "csv":
            return "convert them"
        options = {name.lower(): value for name, value in self.options.items()}
        if "dateformat" not in options:
            return "convert them, or set dateFormat"
        if options.get("inferschema", "").lower() != "true":
            return "convert them, or set inferSchema beside dateFormat"
        return (
            "convert them, for some are no days as dateFormat says; if that is one word for "
            "missing, set it as nullValue in input.options"
        )

    def open(self, engine: Engine) -> Table:
        """Open the table; lazy.

        Raises
        ------
        DataError
            If there is none, or it cannot be read.
        ConfigurationError
            If the format is not known or refuses its options.
        """
        return engine.open_table([self.path], self.format, self.options, key="DATA")


def find_source(
    path: str, data_format: str | None = None, options: Mapping[str, str] | None = None
) -> Source:
    """Find out how a table is read.

    Parameters
    ----------
    path : str
        A file, a directory of files or a pattern; an address of another file system is told by its
        name alone, and :meth:`Source.recognized` looks into it.
    data_format : str or None
        None recognizes it.
    options : mapping of str to str or None
        Of the format; they go before what is recognized.

    Returns
    -------
    Source

    Raises
    ------
    DataError
        If nothing is at the path, or it cannot be read.
    ConfigurationError
        If nothing tells the format, or whether a CSV file has a header; if names tell several
        formats, or a CSV file is written in UTF-16.
    """
    given = dict(options or {})
    place = local_path(path)
    if place is None:
        found = data_format or format_of_name(path)
        if found is None:
            raise ConfigurationError(
                f"DATA: nothing in the name {path!r} tells the format; say it: --format"
            )
        return Source(path, found, given, is_recognized=False)
    files = LocalFiles()
    if data_format is None and (kind := table_format(files, path)) is not None:
        return Source(path, kind, given)
    require_plain_files(files, [path], data_format or "", "DATA")
    listed = listed_files(files, [path])
    if not listed:
        raise DataError(f"DATA: no file is at {path}; check the path")
    first, size = next(((one, size) for one, size in listed if size), listed[0])
    head = _head(files, first, size)
    found = data_format or format_of_files([one for one, _ in listed], "DATA")
    found = found or _by_content(head)
    source = Source(path, found, given, is_recognized=False).recognized(files)
    if found == "csv" and _doubles_quotes(head) and "escape" not in given:
        return replace(source, options={**source.options, "escape": '"'})
    return source


def _notes(found: Recognized) -> tuple[str, ...]:
    if found.file is None:
        return ()
    separator = _SEPARATORS.get(found.separator or ",", repr(found.separator))
    header = "a header in the first line" if found.header else "no header: _c0, _c1, ..."
    return (f"encoding {found.encoding}, fields divided by {separator}, {header}",)


def _doubles_quotes(head: bytes) -> bool:
    """Return whether quotes inside of values are doubled, which Spark does not expect."""
    return re.search(rb'"[^"\r\n]*[^",;|\t\r\n]""', head) is not None


def _by_content(head: bytes) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ORC"):
        return "orc"
    return "json" if head.lstrip().startswith(b"{") else "csv"


def _head(files: Files, path: str, size: int) -> bytes:
    """Return how a file begins; nothing where that cannot be told."""
    try:
        return read_beginning(files, path, size) or b""
    except FilesError as error:
        raise DataError(
            f"DATA: {path} cannot be read ({error.strerror}); check its permissions"
        ) from error
    except DamagedFileError as error:
        raise DataError(
            f"DATA: {path} is damaged: it cannot be unpacked; fetch it again"
        ) from error
