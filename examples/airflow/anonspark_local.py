"""Anonymize a table every night with Airflow 3 on a worker, without Spark and Java.

`schedules/airflow/anonspark_people.py` does the same on a cluster. The configuration is a file on
the worker that only its owner can read: it holds the seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

# Wrong configuration, wrong data, a criterion or gate that does not hold: the next try would end
# in the same way.
FINAL_EXIT_CODES = {2, 3, 4}


class AnonsparkOperator(BaseOperator):
    """Run `anonspark run`, and return the path of the release.

    Parameters
    ----------
    configuration : str
        Path of the YAML file.
    run_id : str
        The same in every try of a night, so that a second try goes on with the first one.
    release : str
        Path of the release.
    settings : mapping of str to str
        Other keys of the configuration.
    program : str
        The command on the worker.
    """

    template_fields = ("configuration", "run_id", "release", "settings", "program")

    def __init__(
        self,
        *,
        configuration: str,
        run_id: str,
        release: str,
        settings: Mapping[str, str] | None = None,
        program: str = "anonspark",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.configuration = configuration
        self.run_id = run_id
        self.release = release
        self.settings = dict(settings or {})
        self.program = program
        self._hook = SubprocessHook()

    def execute(self, context: Any) -> str:  # noqa: ARG002 - as Airflow calls it
        """Run it and wait for its end."""
        settings = {**self.settings, "output.path": self.release, "execution.engine": "local"}
        keys = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        command = [self.program, "run", self.configuration, "--run-id", self.run_id, "--resume"]
        code = self._hook.run_command([*command, "--no-progress", *keys]).exit_code
        if code in FINAL_EXIT_CODES:
            raise AirflowFailException(
                f"anonspark ended with exit code {code}. Nothing was published, and another try "
                "would not change that. See the log above"
            )
        if code:
            raise AirflowException(f"anonspark ended with exit code {code}")
        return self.release

    def on_kill(self) -> None:
        """Let it clean up and end."""
        self._hook.send_sigterm()


with DAG(
    dag_id="anonspark_local",
    description="Anonymizes the table of people without Spark",
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["anonspark"],
):
    AnonsparkOperator(
        task_id="anonymize",
        configuration="{{ var.value.get('anonspark_people', '/etc/anonspark/people.yaml') }}",
        run_id="people-{{ ds }}",
        release="{{ var.value.get('anonspark_releases', '/srv/releases/people') }}/{{ ds }}",
        retries=3,
        retry_delay=timedelta(minutes=5),
        execution_timeout=timedelta(hours=8),
    )
