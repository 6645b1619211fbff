"""Write the configuration that makes a release again."""

from __future__ import annotations

import copy

from anonspark.config import Configuration
from anonspark.config.variables import configuration_yaml
from anonspark.foreign_text import visible
from anonspark.release.manifest import Manifest
from anonspark.release.manifest_form import without_stand_ins


def configuration_text(manifest: Manifest) -> str:
    """Write the configuration of the run that made a release as YAML, without secrets.

    Defaults are left out. Options that were recognized in the files of the input are written out.
    The seed becomes a file named SEED, unless no one set it, and comments name what is missing. A
    union, or releases that were made together, only get a comment.
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
        f"# attributes.{name}.order had {attribute['order_entries']:,} values. Write them again."
        for name, attribute in manifest.attributes.items()
        if "order_entries" in attribute
    ]
    if configured.public_dict()["execution"]["seed_fingerprint"] != seed:
        written.setdefault("execution", {})["seed_file"] = "SEED"
        comments.append(f"# SEED is the file of the secret seed with the fingerprint {seed}.")
    return configuration_yaml(written) + "".join(f"{visible(line)}\n" for line in comments)
