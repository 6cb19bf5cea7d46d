"""The commands put together."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hushtable.cli import (
    bench_adbench,
    bench_paper,
    bench_privacy,
    bench_sites,
    check,
    demo,
    draft,
    fit,
    inspect_,
    merge,
    plan,
    release,
    report,
    score,
    sketch,
)
from hushtable.cli._errors import INTERRUPTED
from hushtable.cli._output import start_afresh
from hushtable.cli.round import (
    approve,
    book,
    collect,
    keygen,
    model,
    next_,
    open_,
    policy,
    resend,
    secret,
    show,
    status,
    submit,
    verify,
)

__all__ = ["run"]

# Help as plain text: it comes in half the time of panels, and pipes and greps well.
_LOOK: dict[str, Any] = {
    "rich_markup_mode": None,
    "add_completion": False,
    "pretty_exceptions_enable": False,
}

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _version(wanted: bool) -> None:
    if wanted:
        import hushtable

        print(f"hushtable {hushtable.__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Private, mergeable outlier detection with small tables of counts.

    One site: fit, score. Several sites that may not pool their rows: plan draft and plan draw
    once; sketch and release at each site; merge; score at each site. With masks, signatures and a
    book of what was spent: round. For people who run no command: report.
    """


class _InOrderOfUse(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return [
            "demo", "fit", "score", "plan", "sketch", "release", "merge", "round", "inspect",
            "report", "bench",
        ]  # fmt: skip


def _app() -> typer.Typer:
    app = typer.Typer(cls=_InOrderOfUse, callback=_root, context_settings=_SETTINGS, **_LOOK)
    plans = typer.Typer(help="Make the plan that several sites share.", **_LOOK)
    plans.command("draft")(draft.draft)
    plans.command("draw")(plan.draw)
    plans.command("check")(check.check)
    plans.command("marginals")(plan.marginals)
    plans.command("ranges")(plan.ranges)
    plans.command("ranks")(plan.ranks)
    plans.command("hide")(plan.hide)
    app.command("demo")(demo.demo)
    app.command("fit")(fit.fit)
    app.command("score")(score.score)
    app.add_typer(plans, name="plan")
    app.command("sketch")(sketch.sketch)
    app.command("release")(release.release)
    app.command("merge")(merge.merge)
    app.add_typer(_rounds(), name="round")
    app.command("inspect")(inspect_.inspect)
    app.command("report")(report.report)
    benchmarks = typer.Typer(help="Measure what the docs promise.", **_LOOK)
    benchmarks.command("adbench")(bench_adbench.adbench)
    benchmarks.command("paper")(bench_paper.paper)
    benchmarks.command("privacy")(bench_privacy.privacy)
    benchmarks.command("sites")(bench_sites.sites)
    app.add_typer(benchmarks, name="bench")
    return app


def _rounds() -> typer.Typer:
    commands = typer.Typer(
        help="Several organisations: each sends one file, and only the sum can be read.", **_LOOK
    )
    commands.command("keygen")(keygen.keygen)
    commands.command("policy")(policy.policy)
    commands.command("open")(open_.open_)
    commands.command("show")(show.show)
    commands.command("approve")(approve.approve)
    commands.command("submit")(submit.submit)
    commands.command("resend")(resend.resend)
    commands.command("collect")(collect.collect)
    commands.command("verify")(verify.verify)
    commands.command("status")(status.status)
    commands.command("next")(next_.next_)
    commands.command("model")(model.model)
    commands.command("book")(book.book)
    commands.command("secret")(secret.secret)
    return commands


def run(arguments: Sequence[str]) -> int:
    """Run one command; failures are raised."""
    start_afresh()
    code = _app()(list(arguments), prog_name="hushtable", standalone_mode=False)
    if code == INTERRUPTED:  # what Typer makes of Ctrl-C
        raise KeyboardInterrupt
    sys.stdout.flush()
    return code if isinstance(code, int) else 0
