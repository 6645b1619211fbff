"""Writes a drafted configuration, its seed and its hierarchies: all of them, or none."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath

from anonspark.config import json_schema
from anonspark.config.reading import is_address
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.ownership import write_new
from anonspark.profiling.draft import Draft
from anonspark.profiling.yaml_text import yaml_text

SCHEMA = "anonspark.schema.json"


def default_path(data: str) -> str:
    """Return where the configuration of a table is written, if nobody says otherwise."""
    return f"{_stem(data)}.yaml"


def default_output(path: str) -> str:
    """Return where the release of a configuration goes, if nobody says otherwise."""
    return f"out/{PurePath(path).stem}"


def seed_path(path: str) -> str:
    """Return the path of the file with the seed, beside the configuration."""
    return str(PurePath(path).with_suffix(".seed"))


def _stem(data: str) -> str:
    name = PurePath(data.rstrip("/*")).name
    return name.partition(".")[0] or "table"


def require_new(path: str) -> None:
    """Check that a configuration, and what belongs to it, can be written.

    Raises
    ------
    ConfigurationError
        If something is there, the path is no local one, or leads through a file.
    """
    if is_address(path):
        raise ConfigurationError(
            f"--out: found the address {path}; expected a path of this machine's disk; write it "
            "there, and copy it"
        )
    if Path(path).is_dir():
        raise ConfigurationError(
            f"--out: found the directory {path}; expected a path of a file, as "
            f"{PurePath(path) / 'anonspark.yaml'}"
        )
    around = next(one for one in PurePath(path).parents if os.path.lexists(one))
    if not Path(around).is_dir():
        raise ConfigurationError(
            f"--out: {path} cannot be written, for {around} is a file; expected a directory; "
            "choose another path"
        )
    for one in (path, seed_path(path)):
        if os.path.lexists(one):
            raise ConfigurationError(
                f"--out: found {one} already, which is not overwritten; remove it, or choose "
                "another path"
            )


def write_draft(draft: Draft, path: str) -> list[str]:
    """Write a configuration and what belongs to it.

    Parameters
    ----------
    draft : Draft
    path : str
        Of the YAML file.

    Returns
    -------
    list of str
        The files that were written, the configuration first. The seed, and hierarchies, which hold
        values of the data, can be read by their owner alone. A JSON Schema that is there already
        is left as it is.

    Raises
    ------
    ConfigurationError
        If one of the files is there already; nothing is written then.
    PublishingError
        If they cannot be written.
    """
    require_new(path)
    seed, schema = seed_path(path), str(PurePath(path).parent / SCHEMA)
    private = {seed: f"{secrets.randbits(64) - 2**63}\n", **draft.hierarchies}
    public = {path: yaml_text(draft, path, seed, SCHEMA)}
    if not os.path.lexists(schema):
        public[schema] = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    write_files(private, public, last=path)
    return [path, *private, *(name for name in public if name != path)]


def write_files(private: Mapping[str, str], public: Mapping[str, str], last: str) -> None:
    """Write files that are not there; the last one says that all are."""
    done: list[str] = []
    names = [*private, *(name for name in public if name != last), last]
    try:
        Path(last).parent.mkdir(parents=True, exist_ok=True)
        for name in names:
            mode = 0o600 if name in private else 0o644
            _write_new(name, {**private, **public}[name], mode)
            done.append(name)
    except BaseException as error:
        for name in done:
            with suppress(OSError):
                Path(name).unlink()
        if isinstance(error, FileExistsError):
            raise ConfigurationError(
                f"--out: found {error.filename2 or error.filename} already, which is not "
                "overwritten; remove it, or choose another path"
            ) from error
        if isinstance(error, OSError):
            raise PublishingError(
                f"--out: nothing can be written beside {last} ({error.strerror}); check the path, "
                "permissions and free space"
            ) from error
        raise


def _write_new(path: str, text: str, mode: int) -> None:
    """Write a file that is there as a whole or not at all, and replaces none."""
    place = Path(path)
    hidden = place.parent / f".{place.name}.{secrets.token_hex(4)}.writing"
    try:
        write_new(hidden, text.encode(), mode)
        os.link(hidden, place)
    finally:
        with suppress(OSError):
            hidden.unlink()
