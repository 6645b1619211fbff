"""Anonymize a table every night with Airflow 3 and its Spark provider.

The connection `spark_default` says which cluster; deploy mode client, so that the exit code of
anonspark reaches Airflow. The configuration is a file on the worker, for its owner alone: it holds
the seed.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, AirflowFailException

# Wrong configuration, wrong data, a criterion or gate that does not hold: the next try would end
# in the same way.
FINAL_EXIT_CODES = {2, 3, 4}


class AnonymizeOperator(SparkSubmitOperator):
    """`spark-submit` that is not tried again where that would change nothing."""

    def execute(self, context: Any) -> None:
        """Submit the job and wait for its end."""
        try:
            super().execute(context)
        except AirflowException as error:
            # The code stands in the provider's message only.
            found = re.search(r"Error code is: (\d+)", str(error))
            if found is not None and int(found[1]) in FINAL_EXIT_CODES:
                raise AirflowFailException(
                    f"anonspark ended with exit code {found[1]}: nothing was published, and "
                    "another try would not change that; see the log above"
                ) from error
            raise


with DAG(
    dag_id="anonspark_people",
    description="Anonymizes the table of people",
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    # One release after the other: a run that waits is better than two that share the disks.
    max_active_runs=1,
    tags=["anonspark"],
):
    AnonymizeOperator(
        task_id="anonymize",
        application="/opt/anonspark/jobs/anonymize.py",
        name="anonspark people {{ ds }}",
        deploy_mode="client",
        # Every key of the configuration can be given here. The run id is that of the date, so a
        # retry, or clearing the task, goes on with the run instead of starting another.
        application_args=[
            "/etc/anonspark/people.yaml",
            "--run-id",
            "people-{{ ds }}",
            "--resume",
            "--no-progress",
            "--set",
            "output.path=/srv/releases/people/{{ ds }}",
        ],
        conf={"spark.executor.memory": "4g", "spark.executor.memoryOverhead": "2g"},
        retries=3,
        retry_delay=timedelta(minutes=5),
        retry_exponential_backoff=True,
        execution_timeout=timedelta(hours=8),
    )
