"""Write the configuration that makes a release again."""

from __future__ import annotations

import copy

import yaml

from anonspark.config import Configuration
from anonspark.release.manifest import Manifest
from anonspark.release.manifest_form import without_stand_ins


def configuration_text(manifest: Manifest) -> str | None:
    """Return the configuration of the run that made a release, without defaults, as YAML.

    What was found in the files of the input is written out. Secrets are not in a release: the seed,
    passwords, and the declared orders of quasi-identifiers, for each of which there is a comment.

    Parameters
    ----------
    manifest : Manifest
        Sound in form.

    Returns
    -------
    str or None
        None where several releases were made together, or it is a union.
    """
    if manifest.parts or manifest.recipient:
        return None
    document = copy.deepcopy(manifest.configuration)
    without_stand_ins(document)
    configured = Configuration.model_validate(document)
    configured = configured.with_input(dict(manifest.input_version))
    written = configured.model_dump(mode="json", exclude_defaults=True)
    written["model"] = {"name": configured.model.name, **written.get("model", {})}
    text = yaml.safe_dump(written, sort_keys=False, allow_unicode=True)
    return text + "".join(
        f"# attributes.{name}.order had {one['order_entries']:,} values. They are not in the "
        "release. Write them again.\n"
        for name, one in manifest.attributes.items()
        if "order_entries" in one
    )


def has_default_seed(manifest: Manifest) -> bool:
    """Return whether a release of one run was made with the seed that no one has set."""
    document = copy.deepcopy(manifest.configuration)
    told = document["execution"]["seed_fingerprint"]
    without_stand_ins(document)
    default = Configuration.model_validate(document).public_dict()
    return bool(default["execution"]["seed_fingerprint"] == told)
