"""Whether the commands that the pages tell people to type exist, and have the options given."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from typer.main import get_command

from perdure.cli.app import app
from perdure.dev_server import temporal_binary
from tests.packaging.source import ROOT, modules

PLAIN = {"cd", "export", "rm"}
"""Programs of every system."""

# The SDK's own environment configuration; it reads them without naming them in Python.
TEMPORAL_VARIABLES = {
    "TEMPORAL_ADDRESS",
    "TEMPORAL_API_KEY",
    "TEMPORAL_CONFIG_FILE",
    "TEMPORAL_NAMESPACE",
    "TEMPORAL_PROFILE",
}


def faults_in(text: str) -> list[str]:
    """What is wrong with these lines of a shell, if anything."""
    return [fault for words in _commands(text) if (fault := _fault(words))]


def _commands(text: str) -> Iterator[list[str]]:
    for line in text.replace("\\\n", " ").splitlines():
        words: list[str] = []
        for word in shlex.split(line, comments=True):
            if word in ("&&", "|", "&"):
                yield words
                words = []
            else:
                words.append(word)
        if words:
            yield words


def _fault(words: list[str]) -> str:
    while words and (found := re.match(r"([A-Z_]+)=", words[0])):
        if found[1] not in _variables():
            return f"nothing reads the variable {found[1]}"
        words = words[1:]
    if not words:
        return ""
    program, *arguments = words
    if program in PLAIN:
        return ""
    check = CHECKS.get(program.rpartition("/")[2])
    if check is not None:
        return check(arguments)
    return "" if (ROOT / program).is_file() else f"no check for {program}"


def _perdure(arguments: list[str]) -> str:
    command: Any = get_command(app)
    name, rest, context = "perdure", list(arguments), None
    try:
        while True:
            context = command.make_context(name, rest, parent=context)
            if not hasattr(command, "resolve_command"):
                break
            name, command, rest = command.resolve_command(
                context, [*context._protected_args, *context.args]
            )
    except Exception as error:  # noqa: BLE001 - whatever typer raises for a wrong command line
        return f"perdure {shlex.join(arguments)}: {error}"
    return ""


def _make(arguments: list[str]) -> str:
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):", text, re.MULTILINE)
    variables = re.findall(r"\$[({](\w+)[)}]|^(\w+) :?=", text, re.MULTILINE)
    known = {*targets, *(name for pair in variables for name in pair), "PYTHON"}
    unknown = [word for word in arguments if word.partition("=")[0] not in known]
    return f"make has no {unknown}" if unknown else ""


def _python(arguments: list[str]) -> str:
    if arguments[0] == "-m":
        module = arguments[1]
        return "" if importlib.util.find_spec(module) else f"there is no module {module}"
    file = ROOT / arguments[0]
    return "" if file.is_file() else f"there is no file {arguments[0]}"


def _pip(arguments: list[str]) -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in arguments[1:]:
        found = re.fullmatch(r"(perdure|\.)(?:\[([\w,]+)\])?", requirement)
        if found is None:
            return f"pip: {requirement} is not perdure"
        extras = set((found[2] or "").split(",")) - {""}
        if missing := extras - set(project["optional-dependencies"]):
            return f"perdure has no extra {missing}"
    return "" if arguments[0] == "install" else f"pip {arguments[0]}"


def _temporal(arguments: list[str]) -> str:
    options = next((i for i, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    command = " ".join(arguments[:options])
    told = _help_of(command)
    if f"temporal {command} [" not in told:
        return f"there is no `temporal {command}`"
    given = [word.partition("=")[0] for word in arguments[options:] if word.startswith("--")]
    unknown = [word for word in given if not re.search(rf"{word}\b", told)]
    return f"temporal {command} has no {unknown}" if unknown else ""


@cache
def _help_of(command: str) -> str:
    asked = [temporal_binary(), *command.split(), "--help"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


@cache
def _variables() -> set[str]:
    read = TEMPORAL_VARIABLES.copy()
    for path in modules().values():
        read.update(re.findall(r"\"([A-Z]+_[A-Z_]+)\"", path.read_text()))
    return read


CHECKS: dict[str, Callable[[list[str]], str]] = {
    "make": _make,
    "perdure": _perdure,
    "pip": _pip,
    "python": _python,
    "temporal": _temporal,
}
