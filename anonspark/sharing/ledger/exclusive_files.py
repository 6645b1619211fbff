"""Files that one of several writers makes, as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import uuid
from collections.abc import Mapping
from typing import Any

from anonspark.engine.files import Files


def create_whole(files: Files, path: str, text: str) -> None:
    """Write a file that must not be there.

    Raises
    ------
    FileExistsError
        If it exists.
    """
    if files.rename_copies(path):
        # What an object store writes is there at its end only.
        files.create_text(path, text)
        return
    if files.exists(path):
        raise FileExistsError(path)
    directory, _, name = path.rpartition("/")
    # Two writers of the same text at once need two drafts: one would empty what the other renamed.
    writer = f"{uuid.getnode()} {os.getpid()} {threading.get_ident()} {text}"
    draft = f"{directory}/.{name}.{digest_of(writer)[:16]}"
    try:
        files.write_text(draft, text)
        files.sync(draft)
        files.rename(draft, path)
        files.sync_names(path)
    except OSError as error:
        files.delete(draft)
        if files.exists(path):
            raise FileExistsError(path) from error
        raise


def digest_of(text: str) -> str:
    """Return the SHA-256 of a file's text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(document: Mapping[str, Any]) -> str:
    """Return the content of a file of a ledger."""
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"
