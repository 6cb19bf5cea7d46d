"""Readings over time for the case `contexts`: panels, and their anomalies.

synthetic   30 entities of 500 hours: a level, a daily curve, and noise whose successive values have
            a correlation of .7
tweets      NAB's tweets about ten companies, by the hour, as logarithms of 1 + their number
series      NAB's series that have windows in which something happened: one entity each

Six kinds of anomalies are planted into panels, at separate places: 25 spikes of four standard
deviations of the entity, 25 values from twelve hours before, 25 values of another entity at that
hour, 8 shifts by two standard deviations for eight hours, 8 values that stay constant for eight
hours, and 25 gaps of four hours, where the row after the gap counts. A row of a series counts as
unusual if it lies in a window.

HushTable judges readings by one of several sets of columns: only the value, the columns of
`history_columns`, both, both with the parts of the time, or the history of the value and of its
mean over the last twelve readings. Columns with a single value are left out, such as the time since
the last reading if readings are regular.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hushtable.history import history_columns
from hushtable_bench.cases.contexts_peers import hushtable_scores
from hushtable_bench.cases.contexts_tables import PublicFiles
from hushtable_bench.data import auc_and_ap

ENTITIES, HOURS = 30, 500
#: First rows of an entity, in which nothing is planted.
FIRST = 40

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
#: Changes the rows from one to before another.
Change = Callable[[int, int], None]


@dataclass(frozen=True)
class PlantedPanel:
    """Readings (entity, at, v), and the kind of anomaly of each row, empty for none."""

    frame: pd.DataFrame
    kind: NDArray[np.object_]

    @property
    def unusual(self) -> Flags:
        return self.kind != ""


# --- readings -------------------------------------------------------------------------------------


def synthetic_panel(seed: int, entities: int = ENTITIES) -> pd.DataFrame:
    rng, hours, parts = np.random.default_rng(seed), np.arange(HOURS), []
    for entity in range(entities):
        level, scale = rng.normal() * 10, np.exp(rng.normal() * 0.5)
        phase, noise, last = rng.integers(0, 24), np.zeros(HOURS), 0.0
        for i in hours:
            last = noise[i] = 0.7 * last + rng.normal() * 0.5
        v = level + scale * (2 * np.sin(2 * np.pi * ((hours + phase) % 24) / 24) + noise)
        at = pd.Timestamp("2026-01-01") + pd.to_timedelta(hours, unit="h")
        parts.append(pd.DataFrame({"entity": f"e{entity}", "at": at, "v": v}))
    return pd.concat(parts, ignore_index=True)


def tweets(files: PublicFiles) -> pd.DataFrame:
    parts = []
    for company in ("AAPL", "AMZN", "CRM", "CVS", "FB", "GOOG", "IBM", "KO", "PFE", "UPS"):
        series = files.series(f"realTweets/Twitter_volume_{company}.csv").set_index("timestamp")
        hourly = series["value"].resample("1h").sum()
        v = np.log1p(hourly.to_numpy(float))
        parts.append(pd.DataFrame({"entity": company, "at": hourly.index, "v": v}))
    return pd.concat(parts, ignore_index=True)


def windowed_series(files: PublicFiles) -> Iterator[tuple[str, PlantedPanel]]:
    """Read the series of NAB in which something happened, by name."""
    windows = json.loads(files.path("NAB", "labels/combined_windows.json").read_text("utf-8"))
    for name, found in windows.items():
        if found:
            series = files.series(name)
            kind = np.full(len(series), "", object)
            for first, last in found:
                kind[series["timestamp"].between(first, last)] = "window"
            frame = pd.DataFrame({"entity": "a", "at": series["timestamp"], "v": series["value"]})
            yield name, PlantedPanel(frame.astype({"v": float}), kind)


# --- anomalies ------------------------------------------------------------------------------------


class PanelInjection:
    """Plants anomalies into a panel: entities one after the other, with hourly readings."""

    def __init__(self, frame: pd.DataFrame, seed: int) -> None:
        self.frame, self.rng = frame, np.random.default_rng(seed + 5)
        self.entity, self.before = frame["entity"].to_numpy(), frame["v"].to_numpy(float)
        self.hour = frame["at"].dt.hour.to_numpy()
        self.sd = frame.groupby("entity")["v"].transform("std").to_numpy()
        self.v, self.kind = self.before.copy(), np.full(len(frame), "", object)
        self.dropped = np.zeros(len(frame), bool)

    def place(self, kind: str, length: int, times: int, change: Change) -> None:
        """Change rows of one entity in random places that are free, with 14 rows around them."""
        done = 0
        while done < times:
            a = int(self.rng.integers(FIRST, len(self.v) - length - 1))
            b = a + length
            if (
                self.entity[a - 30] == self.entity[b]
                and not (self.kind[a - 14 : b + 14] != "").any()
            ):
                change(a, b)
                self.kind[a:b], done = kind, done + 1

    def shift(self, size: float) -> Change:
        def change(a: int, b: int) -> None:
            self.v[a:b] += self.rng.choice([-1, 1]) * size * self.sd[a]

        return change

    def put(self, value: Callable[[int], float]) -> Change:
        def change(a: int, b: int) -> None:
            self.v[a:b] = value(a)

        return change

    def of_another(self, a: int) -> float:
        others = np.flatnonzero((self.entity != self.entity[a]) & (self.hour == self.hour[a]))
        return float(self.before[self.rng.choice(others)])

    def drop(self, a: int, b: int) -> None:
        self.dropped[a : b - 1] = True

    def planted(self, often: int = 25, long: int = 8) -> PlantedPanel:
        """Plant all six kinds: ``often`` of the short ones, ``long`` of those of eight hours."""
        self.place("spike", 1, often, self.shift(4))
        self.place("wrong hour", 1, often, self.put(lambda a: self.before[a - 12]))
        self.place("other entity", 1, often, self.put(self.of_another))
        self.place("shift", 8, long, self.shift(2))
        self.place("stuck", 8, long, self.put(lambda a: self.v[a]))
        self.place("gap", 5, often, self.drop)
        frame = self.frame.assign(v=self.v)[~self.dropped].reset_index(drop=True)
        return PlantedPanel(frame, self.kind[~self.dropped])


# --- columns --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnChoice:
    """HushTable's columns, from readings and `history_columns`, and its options."""

    columns: tuple[str, ...]
    options: dict[str, Any]

    def scores(self, history: pd.DataFrame, seed: int) -> Floats:
        """Score readings with their history; columns with a single value are left out."""
        rows = history[list(self.columns)]
        rows = rows.loc[:, (rows.nunique() > 1) | rows.columns.isin(list(self.options.values()))]
        return hushtable_scores(rows, seed, **self.options)


def choice(*columns: str, **options: Any) -> ColumnChoice:
    return ColumnChoice(columns, options)


#: Last readings whose mean has a history, too.
SMOOTHED = 12
HISTORY = ("v place", "v change", "v spread", "since")
BY_ENTITY = {"time": "at", "entity": "entity"}
CHOICES = {
    "value": choice("v"),
    "value, time=": choice("v", "at", time="at"),
    "columns of history": choice(*HISTORY),
    "entity=": choice("entity", "at", "v", **BY_ENTITY),
    "entity=, context hour": choice("entity", "at", "v", **BY_ENTITY, context="hour"),
    "entity=, mean of 12": choice("entity", "at", "v", "mean", **BY_ENTITY),
}


def with_history(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the history of the value, and of its mean over the last readings of the entity."""
    last = frame.groupby("entity")["v"].rolling(SMOOTHED, min_periods=SMOOTHED // 3)
    smoothed = frame.assign(mean=last.mean().reset_index(level=0, drop=True))
    return history_columns(smoothed, entity="entity", time="at", values=["v", "mean"])


@dataclass(frozen=True)
class PanelFigure:
    """Accuracy of some columns on some panels: means of all, and ROC-AUC by kind of anomaly."""

    panel: str
    columns: str
    auc: float
    ap: float
    by_kind: dict[str, float]

    @property
    def kinds(self) -> str:
        return ", ".join(f"{kind} {auc:.2f}" for kind, auc in self.by_kind.items())


def judge_panels(
    name: str, panels: Sequence[PlantedPanel], choices: dict[str, ColumnChoice]
) -> list[PanelFigure]:
    """Judge each choice of columns by the mean over panels.

    Each panel has its own detector, whose seed is the panel's place.
    """
    histories = [with_history(panel.frame) for panel in panels]
    found = []
    for title, how in choices.items():
        figures: list[dict[str, float]] = []
        for seed, (panel, history) in enumerate(zip(panels, histories, strict=True)):
            scores = how.scores(history, seed)
            figures.append(auc_and_ap(panel.unusual, scores))
            for kind in dict.fromkeys(panel.kind[panel.unusual]):
                chosen = (panel.kind == kind) | ~panel.unusual
                figures[-1][kind] = auc_and_ap(panel.unusual[chosen], scores[chosen])["auc"]
        mean = {key: float(np.mean([one[key] for one in figures])) for key in figures[0]}
        found.append(PanelFigure(name, title, mean.pop("auc"), mean.pop("ap"), mean))
    return found
