"""A busy machine turns no everyday test red: tests that read a clock are slow, and run alone."""

import ast

from places import ROOT

CLOCKS = ("perf_counter", "process_time", "thread_time")


def test_only_serial_tests_measure_time():
    files = [*ROOT.glob("packages/*/tests/**/test_*.py"), *ROOT.glob("tests/**/test_*.py")]
    assert len(files) > 100
    wrong = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        if any(f"time.{clock}" in text for clock in CLOCKS):
            wrong += [f"{file.relative_to(ROOT)}: {name}" for name in timed(ast.parse(text))]
    assert not wrong, "mark them slow and serial, count work instead, or add a benchmark case"


def timed(module):
    """Yield the everyday tests of a file that read a clock."""
    of_file = [ast.unparse(one) for one in module.body if isinstance(one, ast.Assign)]
    of_file = [line for line in of_file if line.startswith("pytestmark")]
    for test in module.body:
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test_"):
            marks = " ".join([*of_file, *map(ast.unparse, test.decorator_list)])
            alone = "mark.slow" in marks and "mark.serial" in marks
            if not alone and any(f"time.{clock}" in ast.unparse(test) for clock in CLOCKS):
                yield test.name
