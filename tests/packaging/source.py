"""The modules of perdure as their files have them, and what loading one brings along."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def files_of_the_package() -> Iterator[Path]:
    """Every file of perdure, those behind the links included."""
    for folder, _, files in os.walk(ROOT / "perdure", followlinks=True):
        if Path(folder).name != "__pycache__":
            yield from (Path(folder, file) for file in files)


def modules() -> dict[str, Path]:
    """Every module of perdure by its import name."""
    found = {}
    for path in files_of_the_package():
        if path.suffix == ".py":
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of perdure that the file imports when it is loaded, and not only for types."""
    imported = set()
    for node in _run_on_load(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= names if names <= known.keys() else names | {node.module}
    return imported & known.keys()


def _run_on_load(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        node = ast.Module(node.orelse, [])
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _run_on_load(child)


LOAD_WITHOUT_THE_ROOT = """
import importlib, json, sys, types
root, *names = json.loads(sys.argv[1])
package = types.ModuleType("perdure")
package.__path__ = [root]
sys.modules["perdure"] = package
for name in names:
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""


def loaded_with(*names: str) -> set[str]:
    """All modules in a fresh interpreter after these were imported.

    perdure/__init__.py does not run: what it imports says nothing of the modules asked for.
    """
    arguments = json.dumps([str(ROOT / "perdure"), *names])
    return _modules_after("-c", LOAD_WITHOUT_THE_ROOT, arguments)


def loaded_with_perdure() -> set[str]:
    """All modules in a fresh interpreter after `import perdure`."""
    return _modules_after("-c", "import json, perdure, sys; print(json.dumps(sorted(sys.modules)))")


def _modules_after(*arguments: str) -> set[str]:
    return set(json.loads(output_of(sys.executable, *arguments, cwd=ROOT)))


def output_of(*command: str | Path, cwd: Path) -> str:
    """What the command prints; when it fails, so does the test, with all that it said."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if process.returncode:
        pytest.fail(f"{process.stdout}{process.stderr}", pytrace=False)
    return process.stdout


def within(loaded: Collection[str], *packages: str) -> list[str]:
    """Those of the modules that are, or are part of, one of the packages."""
    prefixes = tuple(f"{package}." for package in packages)
    return sorted(name for name in loaded if name in packages or name.startswith(prefixes))
