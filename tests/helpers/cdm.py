"""A synthetic CDM: invented persons, visits and measurements, and some odd ones among them."""

import contextlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hushtable_connect.omop import ConceptSet
from hushtable_connect.omop.query import quoted

#: By column of the common set: what is usual, and how far it varies.
USUAL = {
    "body_temperature": (36.8, 0.4), "heart_rate": (76, 12), "systolic_pressure": (126, 16),
    "diastolic_pressure": (76, 10), "respiratory_rate": (16, 3), "oxygen_saturation": (97, 1.5),
    "body_weight": (76, 15), "body_height": (170, 10), "haemoglobin": (13.5, 1.6),
    "haematocrit": (41, 4.5), "leukocytes": (7.4, 2.2), "platelets": (250, 65),
    "sodium": (140, 3), "potassium": (4.2, 0.4), "chloride": (103, 3.5), "bicarbonate": (25, 3),
    "urea_nitrogen": (16, 6), "creatinine": (0.95, 0.3), "glucose": (105, 28),
    "magnesium": (2.0, 0.2), "phosphate": (3.5, 0.6), "albumin": (4.1, 0.45),
    "bilirubin": (0.7, 0.3), "alanine_aminotransferase": (26, 12),
    "aspartate_aminotransferase": (25, 9), "alkaline_phosphatase": (75, 22),
    "lactate": (1.3, 0.5),
}  # fmt: skip
#: Odd persons: an infant's values under an adult's name; pounds, inches and Fahrenheit under other
#: units; a panel in SI units under others; a lysed sample; a septic shock.
ODD = (
    {
        "body_weight": 9, "body_height": 74, "heart_rate": 138, "systolic_pressure": 86,
        "respiratory_rate": 34,
    },
    {"body_weight": 330, "body_height": 66, "body_temperature": 98.6},
    {"glucose": 5.4, "creatinine": 84, "urea_nitrogen": 57, "bilirubin": 12, "albumin": 41},
    {"potassium": 10.8, "aspartate_aminotransferase": 900, "phosphate": 12, "lactate": 9},
    {
        "heart_rate": 148, "systolic_pressure": 62, "diastolic_pressure": 35, "leukocytes": 38,
        "respiratory_rate": 38, "lactate": 14, "creatinine": 4.5,
    },
)  # fmt: skip


#: What the ward of `Cdm.ward` measures: concept, unit, what is usual, and how far it varies.
_OF_WARD = (
    (3020891, 586323, 36.8, 0.4), (3027018, 8541, 75, 10), (3004249, 8876, 125, 14),
    (3012888, 8876, 78, 9), (3024171, 8541, 16, 3), (40762499, 8554, 97, 1.5),
    (3019550, 8753, 139, 3), (3023103, 8753, 4.2, 0.4), (3016723, 8840, 0.95, 0.25),
    (3004501, 8840, 105, 20),
)  # fmt: skip
#: Odd values of the ward, by person: potassium; Fahrenheit and umol/L under other units.
WARD_ODD = {17: (3023103, 9.8), 99: (3020891, 98.4), 500: (3016723, 95)}


@dataclass(frozen=True)
class Cdm:
    """Tables of a CDM as Arrow holds them."""

    person: pa.Table
    visit_occurrence: pa.Table
    measurement: pa.Table
    concept: pa.Table
    odd: tuple[int, ...]

    @classmethod
    def made(cls, persons: int, seed: int = 0) -> "Cdm":
        """Invent persons with two visits each, of which each measures a part."""
        rng = np.random.default_rng(seed)
        ids = np.arange(1, persons + 1) * 7
        odd = np.sort(rng.choice(persons, len(ODD), replace=False))
        common = list(ConceptSet.common())
        names = [one.name for one in common]
        shape = (persons, 2, len(common))
        centre, spread = np.array([USUAL[one.name] for one in common]).T
        # A person differs from others more than from day to day.
        values = centre + spread * (
            0.9 * rng.standard_normal((persons, 1, len(common))) + 0.3 * rng.standard_normal(shape)
        )
        values = np.maximum(values, 0.3 * centre)
        percent = names.index("oxygen_saturation")
        values[..., percent] = np.minimum(values[..., percent], 100)
        # Each visit measures some; what the first one lacks, the second one has.
        seen = rng.random(shape) < 0.6
        seen[:, 1] |= ~seen[:, 0]
        for who, what in zip(odd, ODD, strict=True):
            for name, value in what.items():
                column = names.index(name)
                values[who, :, column], seen[who, :, column] = value, True
        who, visit, column = np.nonzero(seen)
        days = np.datetime64("2024-01-01") + rng.integers(0, 700, persons)
        visit_days = days[:, np.newaxis] + np.array([0, 40])
        dates = visit_days[who, visit]
        concepts = np.array([one.concepts[0] for one in common])
        units = np.array([one.units[0] for one in common])
        measurement = pa.table(
            {
                "measurement_id": np.arange(1, len(who) + 1),
                "person_id": ids[who],
                "measurement_concept_id": concepts[column],
                "measurement_date": pa.array(dates.astype("datetime64[D]")),
                "measurement_datetime": pa.array(dates.astype("datetime64[us]")),
                "value_as_number": np.round(values[who, visit, column], 1),
                "unit_concept_id": units[column],
                "visit_occurrence_id": 2 * ids[who] + visit,
            }
        )
        visits = pa.table(
            {
                "visit_occurrence_id": (2 * ids[:, np.newaxis] + np.arange(2)).ravel(),
                "person_id": np.repeat(ids, 2),
                "visit_start_date": pa.array(visit_days.ravel().astype("datetime64[D]")),
            }
        )
        sexes = rng.choice([8507, 8532], persons)
        born = rng.integers(1935, 2006, persons)
        person = pa.table({"person_id": ids, "gender_concept_id": sexes, "year_of_birth": born})
        units = {unit: one.unit for one in common for unit in one.units}
        concept = pa.table({"concept_id": [*units], "concept_name": [*units.values()]})
        return cls(person, visits, measurement, concept, tuple(ids[odd].tolist()))

    @classmethod
    def ward(cls, persons: int = 3_000, seed: int = 5) -> "Cdm":
        """Invent persons of whom ten concepts of the common set are measured, and some are missing.

        One to three visits each; a concept is missing in a visit with probability 1/5.
        """
        rng = np.random.default_rng(seed)
        ids = np.arange(1, persons + 1)
        of_visit = np.repeat(ids, rng.integers(1, 4, persons))
        visits = np.arange(1, len(of_visit) + 1)
        began = np.datetime64("2025-01-01T00:00") + rng.integers(0, 500_000, len(visits))
        concept, unit, centre, spread = np.array(_OF_WARD).T
        times = rng.choice([0, 1, 1, 1, 2], (len(visits), len(concept)))
        visit, column = (np.repeat(one, times.ravel()) for one in np.nonzero(times + 1))
        when = began[visit] + rng.integers(0, 600, len(visit))
        values = np.round(rng.normal(centre[column], spread[column]), 2)
        late = np.datetime64("2026-06-01T10:00")
        unit_of = dict(zip(concept.tolist(), unit.tolist(), strict=True))
        odd = [
            (who, id_, value, unit_of[id_])
            for who, (id_, value) in WARD_ODD.items()
            if who <= persons
        ]
        who, what, value, its_unit = np.array(odd).T
        moments = np.concatenate([when, np.full(len(odd), late)])
        measurement = pa.table({
            "measurement_id": np.arange(1, len(moments) + 1),
            "person_id": np.concatenate([of_visit[visit], who.astype(np.int64)]),
            "measurement_concept_id": np.concatenate([concept[column], what]).astype(np.int64),
            "measurement_date": pa.array(moments.astype("datetime64[D]")),
            "measurement_datetime": pa.array(moments.astype("datetime64[us]")),
            "value_as_number": np.concatenate([values, value]),
            "unit_concept_id": np.concatenate([unit[column], its_unit]).astype(np.int64),
            "visit_occurrence_id": pa.array(
                np.append(visits[visit], np.zeros(len(odd), np.int64)),
                mask=np.append(np.zeros(len(visit), bool), np.ones(len(odd), bool)),
            ),
        })  # fmt: skip
        there = pa.table({
            "visit_occurrence_id": visits, "person_id": of_visit,
            "visit_start_date": pa.array(began.astype("datetime64[D]")),
        })  # fmt: skip
        person = pa.table({
            "person_id": ids, "gender_concept_id": rng.choice([8507, 8532], persons),
            "year_of_birth": rng.integers(1930, 2006, persons),
        })  # fmt: skip
        named = pa.table({"concept_id": [8753], "concept_name": ["millimole per liter"]})
        return cls(person, there, measurement, named, tuple(WARD_ODD))

    @property
    def tables(self):
        return {name: value for name, value in vars(self).items() if name != "odd"}

    def into_postgres(self, server, schema="cdm"):
        """Put the tables into a schema of a server, of the types that the CDM's own script has."""
        there = quoted(schema)
        server.do(f"DROP SCHEMA IF EXISTS {there} CASCADE", f"CREATE SCHEMA {there}")
        with server.cursor() as cursor:
            for name, table in self.tables.items():
                cursor.adbc_ingest(name, table, db_schema_name=schema)
        server.do(
            f"ALTER TABLE {there}.measurement ALTER value_as_number TYPE NUMERIC "
            "USING value_as_number::numeric"
        )

    def into_duckdb(self, path, schema="cdm"):
        """Put the tables into a schema of a new file."""
        import duckdb

        with contextlib.closing(duckdb.connect(str(path))) as connection:
            connection.execute(f"CREATE SCHEMA {quoted(schema)}")
            for name, table in self.tables.items():
                connection.register("given", table)
                connection.execute(f"CREATE TABLE {quoted(schema)}.{name} AS SELECT * FROM given")
                connection.unregister("given")
