"""Compare the CPU time, and the peak memory, of tasks with other tools and with tasks like them.

The comparisons are those of `hushtable_bench.workloads`. The contestants of an entry take
turns, in one process or, if the start of a process is part of the measure, in processes of their
own. After one round that does not count, the figure of each is its median over the rounds. CPU
seconds include those of child processes; what else the machine does changes their ratios little.
Rows that are scored were not fitted, except where the name of a row states it.

The growth of the costs is measured at doubled sizes: rows, columns, tables, and months of history.
"""

import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from hushtable.cli.result import CommandResult
from hushtable_bench import figures
from hushtable_bench.results import ResultTable, environment_line
from hushtable_bench.runner import FOLDER, PACKAGES, CaseRun, progress
from hushtable_bench.workloads import ENTRIES, GROWTH, Absent, Calls, RatioBound, Task

#: The divisor of sizes with --quick, and the rounds that count without it.
QUICK_SCALE, ROUNDS = 100, 5
#: CPU seconds after which an entry has had enough rounds.
PATIENCE = 25.0
#: How many times as much a doubled size may cost.
DOUBLED = 2.4
#: How many units a second has; a figure in MB is one already.
UNITS = {"s": 1.0, "ms": 1e3, "µs": 1e6, "MB": 1.0}


@dataclass(frozen=True)
class MeasuredRatio:
    """Figures of two contestants, and the bound of their ratio.

    Without another contestant, the bound is for the figure itself, in its unit.
    """

    entry: Task
    bound: RatioBound
    ours: float
    other: float | None

    @property
    def name(self) -> str:
        """Names of both contestants, as the ratio divides them."""
        pair = [self.bound.ours, *([self.bound.other] if self.bound.other else [])]
        if self.bound.faster:
            pair.reverse()
        return f"{self.entry.name}: {' / '.join(pair)}"

    @property
    def judged(self) -> float:
        """The figure that the bound is for."""
        if self.other is None:
            return self.written(self.ours)[0]
        return self.other / self.ours if self.bound.faster else self.ours / self.other

    def written(self, figure: float | None) -> tuple[float, str]:
        """Return a figure in its unit, and its text."""
        if figure is None:
            return float("nan"), ""
        value = figure * UNITS[self.entry.unit]
        return value, f"{rounded(value)} {self.entry.unit}"

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        ratio = "" if self.other is None else rounded(self.judged)
        target = ""
        if self.bound.limit is not None:
            target = f"{self.bound.needs} {self.bound.limit:g}"
        return self.name, self.written(self.ours)[1], self.written(self.other)[1], ratio, target


def rounded(value: float) -> str:
    """Write a number with three digits, and large ones as whole numbers."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the children that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def in_turns(calls: Calls, rounds: int, times: int = 1) -> dict[str, float]:
    """Return the median figure of each contestant, in turns, after a round that does not count.

    Without further rounds, the first one counts. A turn is several ``times`` the same call. A call
    that returns a float has measured itself; the figure of any other call is its CPU seconds. An
    entry that has taken long has fewer rounds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    end = cpu_seconds() + PATIENCE
    for number in range(rounds + 1):
        if number > 1 and cpu_seconds() > end:
            break
        for name, call in calls.items():
            before = cpu_seconds()
            for _ in range(times):
                result = call()
            spent = (cpu_seconds() - before) / times
            seconds[name].append(result if isinstance(result, float) else spent)
    return {name: statistics.median(each[1:] or each) for name, each in seconds.items()}


def compared(entry: Task, scale: int) -> Iterator[MeasuredRatio]:
    """Yield the comparisons of an entry whose contestants are installed."""
    with ExitStack() as stack:
        calls = entry.set_up(scale, stack)
        wanted = {name for bound in entry.bounds for name in (bound.ours, bound.other) if name}
        rounds, times = (ROUNDS, entry.times) if scale == 1 else (0, 1)
        medians = in_turns(calls, rounds, times)
    for name in sorted(wanted - {*calls}):
        progress(f"{entry.name}: without {name}, which is not installed")
    for bound in entry.bounds:
        if bound.ours in medians and (bound.other is None or bound.other in medians):
            other = None if bound.other is None else medians[bound.other]
            yield MeasuredRatio(entry, bound, medians[bound.ours], other)


def measure(run: CaseRun, entries: Sequence[Task], quick: bool) -> list[MeasuredRatio]:
    """Measure all entries; say which are left out, and why."""
    scale = QUICK_SCALE if quick else 1
    ratios: list[MeasuredRatio] = []
    for entry in entries:
        try:
            for pair in compared(entry, scale):
                progress(f"{pair.name}: {pair.judged:.3g}")
                ratios.append(pair)
        except Absent as error:
            run.say(f"Left out: {entry.name}: {error}.")
    return ratios


def measure_growth(run: CaseRun, quick: bool) -> None:
    """Measure each cost at doubled sizes, and draw a panel for each."""
    lines, curves = [], {}
    for kind, (sizes, set_up) in GROWTH.items():
        chosen = sizes[:2] if quick else sizes
        ratios = []
        for size in chosen:
            progress(f"growth: {size:,} {kind}")
            ratios.append(in_turns(set_up(size), 0 if quick else ROUNDS))
        curves[kind] = chosen, ratios
        for at, (size, ratio) in enumerate(zip(chosen, ratios, strict=True)):
            before = ratios[at - 1] if at else {}
            grown = {name: ratio[name] / before[name] for name in before}
            cells = [f"{ratio[name]:.4f}" for name in ratio]
            cells += [f"{grown[name]:.2f}" if name in grown else "" for name in ratio]
            lines.append((f"{size:,} {kind}", *cells))
            for name, times in grown.items():
                if not quick:
                    run.hold(f"{size:,} {kind}: {name}, times half", times, "<=", DOUBLED, ".2f")
    header = ("size", "fit, CPU s", "score, CPU s", "fit, times half", "score, times half")
    run.say(ResultTable(header, lines))
    figures.growth_figure(curves, run.output)


def speed(quick: bool = False, only: str | None = None, output: Path = FOLDER) -> CommandResult:
    """Compare CPU seconds and memory with other tools.

    Contestants take turns. With --quick, sizes are small, and figures mean nothing; with --only,
    growth is not measured. The whole takes ten minutes on an idle machine.
    """
    run = CaseRun("speed", output)
    chosen = [entry for entry in ENTRIES if only is None or only in entry.name]
    with threadpool_limits(limits=1):
        ratios = measure(run, chosen, quick)
        rows = [entry.cells() for entry in ratios]
        rows.append((environment_line(PACKAGES), "", "", "", ""))
        run.say(ResultTable(("task", "ours", "other", "ratio", "target"), rows))
        if only is None:
            measure_growth(run, quick)
    for entry in ratios if not quick else ():
        if entry.bound.limit is not None:
            run.hold(entry.name, entry.judged, entry.bound.needs, entry.bound.limit, ".3g")
    return run.finish()
