"""The public tables that benchmarks and tests anonymize: their files and columns, said once."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ADULT", "ADULT_BY_HIERARCHIES", "ADULT_OF_ARX", "DATA_SETS", "DataSet"]


@dataclass(frozen=True)
class DataSet:
    """A file in the folder of the data sets, and the roles of its columns.

    Parameters
    ----------
    file : str
        Name of the file.
    quasi_identifiers : tuple of str
        Columns, in the order of the configuration.
    sensitive : str, optional
        Sensitive column.
    """

    file: str
    quasi_identifiers: tuple[str, ...]
    sensitive: str | None = None

    def roles(self) -> dict[str, str]:
        """Return the section ``attributes`` of a configuration without options."""
        roles = dict.fromkeys(self.quasi_identifiers, "quasi_identifier")
        return roles | ({self.sensitive: "sensitive"} if self.sensitive else {})


# The numeric quasi-identifiers that papers on Mondrian take.
ADULT = DataSet(
    "adult.csv", ("age", "fnlwgt", "capital-gain", "capital-loss", "hours-per-week"), "income"
)
# The attributes that have hierarchies in the folder of the data sets.
ADULT_BY_HIERARCHIES = DataSet(
    "adult.csv",
    (
        "age", "workclass", "education", "marital-status", "occupation", "race", "sex",
        "native-country",
    ),
    "income",
)  # fmt: skip
# Adult as ARX has it; conf/hierarchies has the hierarchies of the thesis on full-domain recoding.
ADULT_OF_ARX = DataSet(
    "adult_arx.csv",
    (
        "age", "sex", "race", "marital-status", "education", "native-country", "workclass",
        "occupation", "salary-class",
    ),
)  # fmt: skip

DATA_SETS = {
    "Adult": ADULT,
    "Diabetes": DataSet(
        "diabetic_data.csv.gz",
        (
            "time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications",
            "number_outpatient", "number_emergency", "number_inpatient", "number_diagnoses",
        ),
        "readmitted",
    ),
    "FARS": DataSet(
        "fars.csv",
        ("iage", "irace", "ideathmon", "ideathday", "isex", "ihispanic", "istatenum"),
        "iinjury",
    ),
    "KDD Cup 99": DataSet(
        "kddcup99_10_percent.csv.gz",
        (
            "duration", "protocol_type", "service", "flag", "src_bytes", "dst_bytes", "count",
            "srv_count", "same_srv_rate", "dst_host_count",
        ),
    ),
    "Poker": DataSet(
        "poker_hand_train.csv",
        tuple(f"{kind}{card}" for card in range(1, 6) for kind in "SC"),
        "CLASS",
    ),
}  # fmt: skip
