"""The commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from ragscore.cli.calibrate import calibrate
from ragscore.cli.claims import claims
from ragscore.cli.compare import compare
from ragscore.cli.demo import demo
from ragscore.cli.deploy import deploy
from ragscore.cli.doctor import doctor
from ragscore.cli.export import export
from ragscore.cli.import_ import import_
from ragscore.cli.ingest import ingest
from ragscore.cli.init import init
from ragscore.cli.label import label
from ragscore.cli.merge import merge
from ragscore.cli.noise import noise
from ragscore.cli.notify import notify
from ragscore.cli.plan import plan
from ragscore.cli.prune import prune
from ragscore.cli.report import report
from ragscore.cli.resume import resume
from ragscore.cli.run import run
from ragscore.cli.runs import runs
from ragscore.cli.schema import schema
from ragscore.cli.show import show
from ragscore.cli.sql import sql
from ragscore.cli.trend import trend
from ragscore.cli.up import up
from ragscore.cli.validate import validate
from ragscore.errors import RagscoreError


def _version() -> str:
    from ragscore import __version__

    return __version__


app = App(
    name="ragscore",
    help="Is your retrieval better or worse than last time, on which questions, for which facts?",
    help_format="plaintext",  # Markdown would cost more than all other imports of --help
    version=_version,
    version_flags=["--version"],
    help_epilogue="Every command takes --debug, which shows tracebacks. "
    "Exit codes: 0 pass, 1 gate failed, 2 usage or config, 3 could not evaluate, 4 inconclusive.",
)
for command in (
    demo,
    init,
    validate,
    plan,
    run,
    resume,
    runs,
    show,
    compare,
    trend,
    report,
    label,
    calibrate,
    noise,
    sql,
    export,
    ingest,
    merge,
    prune,
    schema,
    claims,
    doctor,
    deploy,
    up,
    notify,
):
    app.command(command)
app.command(import_, name="import")


def main(arguments: Sequence[str] | None = None) -> None:
    """Carry out a command line and exit with its code. Tracebacks are shown only with `--debug`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    given = [each for each in given if each != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            if os.environ.get("PYTHONIOENCODING"):
                stream.reconfigure(errors="backslashreplace")  # somebody said what can be read at the other end
            else:
                stream.reconfigure(encoding="utf-8", errors="replace")  # a Windows code page cannot say ✓
    try:
        code = app(given, exit_on_error=False, print_error=False, result_action="return_value")
    except RagscoreError as error:
        if debug:
            raise
        _complain(str(error))
        code = error.exit_code
    except CycloptsError as error:
        _complain(" ".join(str(error).split()), hint="`ragscore --help` lists commands and options")
        code = 2
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered has nowhere to go
        code = 0
    except Exception as error:
        if debug:
            raise
        _complain(f"{type(error).__name__}: {error}", hint="this is a fault of ragscore; `--debug` shows where")
        code = 3
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        _complain(f"standard output cannot be written: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or 3
    sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str, *, hint: str | None = None) -> None:
    for line in text.splitlines():
        sys.stderr.write(f"error: {line}\n")
    if hint:
        sys.stderr.write(f"       {hint}\n")
