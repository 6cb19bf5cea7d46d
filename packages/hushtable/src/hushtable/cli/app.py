"""The table of commands, and the code that loads and runs one of them."""

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib import import_module
from os import R_OK, access
from os.path import exists
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

import hushtable
from hushtable.cli.errors import INTERRUPTED, escaping, written
from hushtable.errors import HushTableError, PluginError, UsageError, as_entries

#: Commands in the order of use: name; module, and function if it has another name; first line of
#: the docstring. A group has no module, and the names of its commands begin with the name of the
#: group; ``-6`` lists its first six commands, and the others under "More". ``!`` and what to do
#: instead stand for a command that was removed.
COMMANDS = """
check           check              Show how a table is read, and what you should check.
fit             fit                Fit a detector to rows and write it as a model.
score           score              Score rows and write the scores.
review          review             Review the lowest rows in turn; each verdict updates the scores.
learn           learn              Learn from verdicts (outlier or fine) in a file.
watch           watch              Score rows that are new since the last call (for cron, systemd).
drift           drift              Compare two sets of rows, and report how much chance explains.
plan            -                  Make the plan that several sites share.
plan draft      schema             Draft a schema from the names and types of the columns.
plan draw       plan               Draw the hash functions that all sites share.
plan check      schema             Check rows against a schema or plan, before they are counted.
plan relations  !            relations are found where the rows are: hushtable fit --relations
plan ranges     !            in Python, Plan.ranges(schema, ...) makes the plan; round open --ranges
plan verdicts   !            learn at each site (hushtable learn), where verdicts need no noise
sketch          release            Count rows under a plan and write the counts as a sketch.
release         release            Add noise to a sketch: the result may leave the site.
merge           release            Add up sketches, or releases, of the same plan.
decode          release            Decode the increments of all periods so far into one model.
inspect         inspect_           Show what a .hush file or a card holds, and whether it is intact.
report          report             Write one HTML file for analyst, privacy officer and coordinator.
"""

#: By command of another package of this repository, that package.
_ELSEWHERE = {
    "bench": "bench", "demo": "federation", "desk": "desk", "export": "connect",
    "round": "federation",
    **{
        f"plan {name}": "federation"
        for name in ("gate", "marginals", "ranks", "second")
    },
}  # fmt: skip
#: Numbers that can be read as they are; Typer reads all others.
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
# Help is plain text: it takes half the time of panels, and works well with pipes and grep.
_LOOK: dict[str, Any] = {
    "rich_markup_mode": None,
    "add_completion": False,
    "pretty_exceptions_enable": False,
}


def _reading(parameter: Any, annotation: object) -> Callable[[Any, Any], Any]:
    """Return the function that reads the values of a parameter.

    It reads texts, paths, numbers and defaults itself, and leaves all other values, and wrong ones,
    to Typer, which imports pydantic for them: that takes as long as importing NumPy.
    """
    kind, *limits = get_args(annotation) or [annotation]
    if isinstance(kind, UnionType):  # with None
        kind = get_args(kind)[0]
    if not isinstance(kind, type):
        kind = ()  # which no value is of
    by_typer: Callable[[Any, Any], Any] = parameter.process_value

    def read(context: Any, value: Any) -> Any:
        if kind is Path and isinstance(value, str) and "\0" not in value:
            value = Path(value) if not exists(value) or access(value, R_OK) else value
        elif kind in (int, float) and isinstance(value, str) and _NUMBER.fullmatch(value):
            value = _within(value, kind, limits)
        absent = value is None and not parameter.required
        plain = absent or (isinstance(value, kind) and not parameter.multiple)
        if not plain or parameter.nargs != 1:
            return by_typer(context, value)
        if absent and parameter.multiple:
            value = ()
        called = parameter.callback
        return value if called is None else called(context, parameter, value)

    return read


def _within(text: str, kind: Callable[[str], Any], limits: Sequence[Any]) -> Any:
    if kind is int and "." in text:
        return text
    value, ends = kind(text), [(limit.min, limit.max) for limit in limits]
    inside = all((a is None or value >= a) and (b is None or value <= b) for a, b in ends)
    return value if inside else text


class _Params:
    """Parameters for which Typer reads no more values than it has to: see `_reading`."""

    #: Annotations by the parameters' names.
    kinds: Mapping[str, Any] = MappingProxyType({})

    def get_params(self, ctx: object) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                parameter.process_value = _reading(parameter, self.kinds.get(parameter.name))
        return parameters


class _Command(_Params, TyperCommand):
    """A loaded command."""


class _Entry(TyperCommand):
    """A command listed by its line in the table; its module is imported when it is called."""

    def __init__(self, name: str, home: str, line: str) -> None:
        super().__init__(name, help=line, rich_markup_mode=None)
        self._home = home

    def load(self) -> Any:
        module, _, function = self._home.partition(":")
        alone = typer.Typer(**_LOOK)
        body = _with_options(getattr(import_module(module), function or str(self.name)))
        # After \b, Typer keeps the lines of the example apart.
        help = re.sub(r"\n\n(?=Example:)", "\n\n\b\n", inspect.cleandoc(body.__doc__ or ""))
        alone.command(self.name, cls=_Command, help=help)(body)
        command: Any = typer.main.get_command(alone)
        command.kinds = body.__annotations__
        return command


def _with_options(body: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with an option for each field of a dataclass that ``body`` takes.

    A function that returns a `CommandResult` gets ``--json``, and its result is printed.
    """
    from hushtable.cli.options import Json  # not for --help
    from hushtable.cli.result import CommandResult, machine_output
    from hushtable.data.options import notes

    signature, groups = inspect.signature(body), dict[str, Any]()
    parameters = []
    for name, parameter in signature.parameters.items():
        # A class that does not know the command line has a function that makes it of options, which
        # are defined next to it: see `Reads`.
        group, *made = get_args(parameter.annotation) or [parameter.annotation]
        if not is_dataclass(group):
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        make, kinds = made or (group, {f.name: f.type for f in fields(group)})
        groups[name] = make, kinds
        defaults = {f.name: f.default for f in fields(group)}
        parameters += [_option(each, kinds[each], defaults.get(each)) for each in kinds]
    returned = signature.return_annotation
    if CommandResult in (returned, *get_args(returned)):
        parameters.append(_option("json", Json, False))
    read_by = [name for _, kinds in groups.values() for name in kinds]

    def command(**given: Any) -> Any:
        notes.clear()
        for name, (make, kinds) in groups.items():
            given[name] = make(**{each: given.pop(each) for each in kinds})
        with escaping(), machine_output(given.pop("json", False)):
            try:
                result = body(**given)
            except HushTableError as error:
                if "read" in read_by and "drop" not in read_by:
                    error.args = (as_entries(str(error)),)
                raise
            return result.write() if isinstance(result, CommandResult) else result

    wrapped: Any = command  # Typer reads the options off it
    wrapped.__doc__, wrapped.__signature__ = body.__doc__, inspect.Signature(parameters)
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _option(name: str, kind: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


class _Group(_Params, TyperGroup):
    """Commands of the table; lists, suggestions and completion see entries only.

    Commands of other packages join when all are listed, or when one is called that is not in the
    table.
    """

    complete: Callable[[], None]
    #: What to do instead of each command that was removed.
    removed: Mapping[str, str] = MappingProxyType({})
    #: How many commands the help lists before "More".
    first: int = sys.maxsize

    def format_commands(self, ctx: object, formatter: Any) -> None:
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        for title, listed in (("Commands", names[: self.first]), ("More", names[self.first :])):
            if listed:
                with formatter.section(title):
                    formatter.write_dl(
                        [(name, self.commands[name].get_short_help_str(limit)) for name in listed]
                    )

    def list_commands(self, ctx: object) -> list[str]:
        self.complete()
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            self.complete()
        if cmd_name in self.removed:
            raise UsageError(f"{ctx.command_path} {cmd_name} was removed: {self.removed[cmd_name]}")
        command = self.commands.get(cmd_name)
        path = f"{ctx.command_path} {cmd_name}"
        package = _ELSEWHERE.get(path.partition(" ")[2])
        if command is None and package is not None and not ctx.resilient_parsing:
            from hushtable import plugins  # not needed for a command of the table

            raise plugins.missing(path, package)
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, _Entry):
            from hushtable.progress import silenced  # not for --help

            ctx.with_resource(silenced())  # commands have bars of their own
            command = command.load()
        return name, command, rest


def _version(wanted: bool) -> None:
    if wanted:
        print(f"hushtable {hushtable.__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Private, mergeable outlier detection with small tables of counts.

    For one site: fit, then score. For several sites that may not pool their rows: plan draft and
    plan draw once; sketch and release at each site; merge; score at each site. For rounds with
    masks, signatures and a book of the spent budget: round. For readers who do not use the command
    line: report.
    """


def _fill(root: _Group, table: str, package: str) -> None:
    for row in table.strip().splitlines():
        *group, name = row[:16].split()
        home, line = row[16:].split(maxsplit=1)
        above: Any = root.commands[group[0]] if group else root
        among = above.commands
        if name in among:
            raise PluginError(f"two packages have a command {' '.join([*group, name])!r}")
        if home == "!":
            above.removed = {**above.removed, name: line}
        elif home.startswith("-"):
            among[name] = made = _Group(name=name, help=line, rich_markup_mode=None)
            made.complete, made.first = root.complete, int(home[1:] or sys.maxsize)
        else:
            among[name] = _Entry(name, f"{package}.{home}", line)


def _complete(root: _Group) -> None:
    """Add the commands of other packages; name one that fails, and go on with the others."""
    from hushtable import plugins  # not needed for a command of the table

    for point, table in plugins.each(plugins.COMMANDS):
        try:
            if isinstance(table, PluginError):
                raise table
            _fill(root, table, point.module)
        except PluginError as error:
            print(f"hushtable: warning: {error}", file=sys.stderr)


def app() -> Any:
    """Return the group of all commands, without importing any of their modules."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
    look = _LOOK | {"add_completion": True}
    base = typer.Typer(cls=_Group, callback=_root, context_settings=settings, **look)
    group: Any = typer.main.get_command(base)
    group.complete = cache(partial(_complete, group))
    _fill(group, COMMANDS, "hushtable.cli")
    return group


def run(arguments: Sequence[str]) -> int:
    """Run one command; raise its failures."""
    written.clear()  # what an earlier command in this process wrote
    for stream in (sys.stdout, sys.stderr):  # no character may make printing fail
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = app()(list(arguments), prog_name="hushtable", standalone_mode=False)
    if code == INTERRUPTED:  # what Typer makes of Ctrl-C
        raise KeyboardInterrupt
    sys.stdout.flush()
    return code if isinstance(code, int) else 0
