"""Write the configuration that makes a release again."""

from __future__ import annotations

import copy

from anonspark.config import Configuration
from anonspark.config.variables import configuration_yaml
from anonspark.foreign_text import visible
from anonspark.release.manifest import Manifest
from anonspark.release.manifest_form import without_stand_ins


def configuration_text(manifest: Manifest) -> str:
    """Return the configuration of the run that made a release, without defaults, as YAML.

    What was found in the files of the input is written out. Secrets are not in a release. The seed
    becomes a file named SEED, unless no one set it, and comments show what is missing.

    Parameters
    ----------
    manifest : Manifest
        Sound in form.

    Returns
    -------
    str
        A comment only if several releases were made together, or it is a union.
    """
    if manifest.parts or manifest.recipient:
        return "# It was made of or with other releases, and has no configuration of its own.\n"
    document = copy.deepcopy(manifest.configuration)
    seed = document["execution"]["seed_fingerprint"]
    without_stand_ins(document)
    configured = Configuration.model_validate(document)
    settled = configured.with_input(dict(manifest.input_version))
    written = settled.model_dump(mode="json", exclude_defaults=True)
    written["model"] = {"name": configured.model.name, **written.get("model", {})}
    comments = [
        f"# attributes.{name}.order had {one['order_entries']:,} values. Write them again."
        for name, one in manifest.attributes.items()
        if "order_entries" in one
    ]
    if configured.public_dict()["execution"]["seed_fingerprint"] != seed:
        written.setdefault("execution", {})["seed_file"] = "SEED"
        comments.append(f"# SEED is the file of the secret seed with the fingerprint {seed}.")
    return "".join([configuration_yaml(written), *(f"{visible(one)}\n" for one in comments)])
