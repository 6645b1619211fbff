"""Compute the loss of a plan's releases by the other strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from anonspark.config.models import MondrianOptions
from anonspark.engine.protocol import Engine
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.layers.publish.run_state import RunState
from anonspark.layers.publish.staging import Staging
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.run import staged_release
from anonspark.progress import InnerProgress, Progress
from anonspark.sharing.ledger.chain import Key
from anonspark.sharing.ledger.joint_classes import Demand
from anonspark.sharing.recipients.nested import NestedMaker
from anonspark.sharing.recipients.plan import NESTED_MODELS, Plan, Recipient
from anonspark.sharing.recipients.source import FrozenSource
from anonspark.sharing.recipients.strategy import (
    Independent,
    ReleaseSource,
    Strategy,
    prepare_source,
)


@dataclass(frozen=True)
class OtherStrategy:
    """Makes the releases of a plan by the other strategy, measures them, and deletes them."""

    engine: Engine
    plan: Plan
    staging: Staging
    progress: Progress
    key: Key
    run_id: str

    def losses(self, frozen: FrozenSource, strata: Mapping[int, int]) -> dict[str, float | None]:
        """Return ``gcp`` of each release under the other strategy, or None if it cannot be made.

        ``strata`` are the records of each pattern. Costs as much as the plan itself, except for
        publishing and the joint check, and for an independent plan that for each different k.
        """
        losses: dict[str, float | None] = {}
        makers: dict[int, Strategy] = {}
        for index, recipient in enumerate(self.plan.recipients):
            # A nested counterpart has a base partition for each k. 0 stands for independent.
            k = 0 if self.plan.file.strategy == "nested" else recipient.configuration.privacy.k
            with self.progress.stage(f"the other way: {recipient.name}"):
                try:
                    if k not in makers:
                        makers[k] = self._strategy(k, frozen, strata)
                    losses[recipient.name] = self._loss(recipient, makers[k].source(index))
                except (ConfigurationError, DataError, GuaranteeError):
                    losses[recipient.name] = None
        return losses

    def _strategy(self, k: int, frozen: FrozenSource, strata: Mapping[int, int]) -> Strategy:
        """Return a nested strategy with joint classes of k people, or the independent one for 0.

        It is staged in a separate directory, because the plan resumes from the state of its own.
        """
        if not k:
            return Independent(frozen, strata)
        location = replace(self.staging.paths, private=f"{self.staging.records}/nested-{k}")
        self.engine.files.make_private_directory(location.state)
        staging = Staging(location, RunState.claim(self.engine.files, location.state))
        partition = self.plan.partition
        privacy = partition.privacy.model_copy(update={"k": k})
        changes: dict[str, Any] = {"privacy": privacy}
        if partition.model.name not in NESTED_MODELS:
            changes["model"] = MondrianOptions(name="smondrian")
        plan = replace(
            self.plan,
            demand=Demand(k, self.plan.demand.diversity),
            partition=partition.model_copy(update=changes),
        )
        maker = NestedMaker(self.engine, plan, staging, self.progress, self.key, None, self.run_id)
        return maker.make(frozen, strata)

    def _loss(self, recipient: Recipient, source: ReleaseSource) -> float:
        """Make a release without publishing it, and return its loss."""
        path = f"{self.staging.records}/other/{recipient.name}"
        output = recipient.configuration.output.model_copy(update={"path": path, "mode": "error"})
        configuration = recipient.configuration.model_copy(update={"output": output, "gates": {}})
        context = RunContext(
            self.engine,
            configuration,
            self.run_id,
            datetime.now(UTC),
            InnerProgress(run_id=self.run_id, outer=self.progress),
            "comparison",
        )
        snapshot = prepare_source(
            self.engine, configuration, f"{self.staging.records}/other-{recipient.name}", source
        )
        snapshot = replace(snapshot, origin=configuration.input_fingerprint())
        with staged_release(context, snapshot=snapshot, make_model=source.make_model) as staged:
            return float(staged.release.summary["gcp"])
