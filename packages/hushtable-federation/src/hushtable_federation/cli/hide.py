"""``hushtable plan hide``: the layout of a plan, for a coordinator who may not have the plan."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from hushtable import files
from hushtable.cli.options import Json, Output, argument
from hushtable.cli.output import Target, finish
from hushtable.plans.plan import Plan
from hushtable_federation.layout import Layout

_Plan = Annotated[Path, argument("PLAN", "Plan of hushtable plan draw.")]


def hide(plan: _Plan, output: Output, as_json: Json = False) -> None:
    """Take the hash functions off a plan, for the coordinator.

    With the layout, a coordinator opens rounds and adds up what the sites send, but can hash no
    row, and so score none.

    Example:
      hushtable plan hide plan.hush -o layout.hush
    """
    target = Target(output, [plan])
    whole = files.read(plan).expect("plan").build(Plan.from_file)
    layout = Layout.of(replace(whole, hidden=True))
    target.save(layout)
    facts = {"command": "plan hide", "layout": str(output), "plan_id": layout.plan_id}

    def text() -> None:
        if whole.purpose.refines and not whole.hidden:
            print(f"Wrote {target}: for the coordinator. {plan} follows from the schema: whoever")
            print("has that can make it.")
            return
        print(f"Wrote {target}: for the coordinator. {plan} is for the sites only: let nobody else")
        print("read it (chmod 600).")

    finish(as_json, facts, text)
