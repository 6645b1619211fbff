"""Find out how a table is read, by its name and the first bytes of its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from anonspark.config.input import NOT_IN_FILES, format_of_name
from anonspark.engine.choice import Work, local_path
from anonspark.engine.data_files import listed_files
from anonspark.engine.files import Files
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.managed_tables import table_format
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.recognition import recognize
from anonspark.errors import ConfigurationError, DataError


@dataclass(frozen=True)
class Source:
    """A table, and how it is read: with a format of Spark's data sources and its options.

    ``notes`` say in words what was recognized, if the files were read: ``is_recognized``.
    """

    path: str
    format: str
    options: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    is_recognized: bool = True

    @property
    def work(self) -> Work:
        """The table for the choice of an engine."""
        return Work((self.path,), (), (self.format,))

    def recognized(self, files: Files) -> Source:
        """Return the source with the format and options that its files show.

        Raises DataError as :func:`anonspark.engine.recognition.recognize` does, and
        ConfigurationError if it is uncertain whether a CSV file has a header, because a profile
        shows names of columns but must not show values.
        """
        if self.is_recognized:
            return self
        names = {name.lower() for name in self.options}
        detected = recognize(
            files,
            [self.path],
            self.format or None,
            self.options,
            key="DATA",
            asks=True,
            guesses=True,
        )
        header = {"header": "false"} if detected.header is False and "header" not in names else {}
        return replace(
            self,
            format=detected.data_format,
            options={**header, **detected.options, **self.options},
            notes=(detected.words,) if detected.words else (),
            is_recognized=True,
        )

    @property
    def remedy_for_days(self) -> str:
        """How to read days that are not written as 2026-01-31."""
        if self.format != "csv":
            return "convert them"
        options = {name.lower(): value for name, value in self.options.items()}
        if "dateformat" not in options:
            return "convert them, or set dateFormat"
        if options.get("inferschema", "").lower() != "true":
            return "convert them, or set inferSchema together with dateFormat"
        return (
            "convert them, because some do not match dateFormat. If that is one word for "
            "missing, set it as nullValue in input.options"
        )

    def open(self, engine: Engine) -> Table:
        """Open the table. Lazy.

        Raises DataError if no table is there or it cannot be read, and ConfigurationError if the
        format is not known or refuses its options.
        """
        return engine.open_table([self.path], self.format, self.options, key="DATA")


def find_source(
    path: str, data_format: str | None = None, options: Mapping[str, str] | None = None
) -> Source:
    """Find out how to read the table at a path: a file, a directory of files or a pattern.

    ``options`` override what is recognized. Without a ``data_format`` the files show it. For an
    address of another file system only the name is used, and :meth:`Source.recognized` reads the
    files later. Raises DataError if nothing is at the path, or it cannot be read, and
    ConfigurationError if the format is unknown, or whether a CSV file has a header, or if names
    show several formats.
    """
    settings = dict(options or {})
    local = local_path(path)
    if local is None or data_format in NOT_IN_FILES:
        name = data_format or format_of_name(path)
        if name is None:
            raise ConfigurationError(
                f"DATA: the name {path!r} does not show the format. Name it: --format"
            )
        return Source(path, name, settings, is_recognized=False)
    files = LocalFiles()
    if data_format is None and (kind := table_format(files, path)) is not None:
        return Source(path, kind, settings)
    if not listed_files(files, [path]):
        raise DataError(f"DATA: no file is at {path}. Check the path")
    return Source(path, data_format or "", settings, is_recognized=False).recognized(files)
