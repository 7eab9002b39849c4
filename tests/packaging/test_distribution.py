"""What is published: the sdist, the wheel that is built from it, and that wheel at work."""

import os
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.packaging.source import ROOT, files_of_the_package, modules, output_of

WORKFLOWS_AND_ACTIVITIES = sorted(
    path.resolve().relative_to(ROOT).as_posix()
    for name, path in modules().items()
    if name.startswith(("perdure.workflows", "perdure.activities"))
)


class Distribution(NamedTuple):
    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    """The sdist of this checkout, and the wheel that is built from the sdist alone."""
    folder = tmp_path_factory.mktemp("dist")
    output_of(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return Distribution(*folder.glob("*.tar.gz"), *folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(distribution: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with the wheel, and our own copies of its dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    install = ("install", "--quiet", "--no-deps", "--no-index", distribution.wheel)
    output_of(sys.executable, "-m", "pip", "--python", python, *install, cwd=folder)
    # A path in a .pth file comes last, and the .pth files that lie there are not read: nothing of
    # the checkout, which this environment has as an editable install, comes along.
    site_packages = Path(output_of(python, "-c", SITE_PACKAGES, cwd=folder).strip())
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


SITE_PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'))"


def test_the_sdist_has_real_folders_and_no_links(distribution: Distribution) -> None:
    with tarfile.open(distribution.sdist) as archive:
        members = archive.getmembers()
    names = [member.name.partition("/")[2] for member in members]
    assert [member.name for member in members if not member.isreg()] == []
    assert [name for name in names if name.startswith(("perdure/workflows", "perdure/activ"))] == []
    assert sorted(name for name in names if name in WORKFLOWS_AND_ACTIVITIES) == (
        WORKFLOWS_AND_ACTIVITIES
    )
    assert {"LICENSE", "Makefile", "README.md", "perdure/py.typed", "pyproject.toml"} <= set(names)


def test_the_wheel_claims_no_top_level_name_but_its_own(distribution: Distribution) -> None:
    top_level = {name.partition("/")[0] for name in _files_of(distribution.wheel)}
    assert {name for name in top_level if not name.endswith(".dist-info")} == {"perdure"}


def test_the_wheel_has_every_file_of_the_package_once(distribution: Distribution) -> None:
    names = [name for name in _files_of(distribution.wheel) if ".dist-info/" not in name]
    files = [path.relative_to(ROOT).as_posix() for path in files_of_the_package()]
    assert {"perdure/py.typed", "perdure/demo/interrupted.jsonl"} <= set(names)
    assert sorted(names) == sorted(files)


def test_the_installed_package_is_the_wheel_and_not_the_checkout(installed: Path) -> None:
    where = output_of(installed, "-c", WHERE_IS_IT, cwd=installed.parent).split()
    assert [Path(file).is_relative_to(installed.parents[1]) for file in where] == [True] * 3


WHERE_IS_IT = """
import perdure, perdure.activities, perdure.workflows
print(perdure.__file__, perdure.activities.__file__, perdure.workflows.__file__)
"""


def test_a_session_runs_from_the_installed_wheel(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server is a command, not a module: it is found on the PATH.
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"), prepend=os.pathsep)
    (tmp_path / "conversation.py").write_text(CONVERSATION)
    assert (
        output_of(installed, "conversation.py", cwd=tmp_path)
        == "It lasts.\n['user', 'assistant']\n"
    )
    assert [log.name for log in (tmp_path / "logs").iterdir()] == ["first.jsonl"]


CONVERSATION = """
import asyncio

import perdure
from perdure.testing import ScriptedModel

agent = perdure.Agent("echo", model=ScriptedModel("It lasts."))


async def main() -> None:
    async with perdure.local(agents=[agent], store="files:logs") as sessions:
        session = await sessions.open("first", agent="echo")
        [answer] = await (await session.run("Does it last?"))
        print(answer.text)
        print([message.role for message in await session.messages()])


if __name__ == "__main__":
    asyncio.run(main())
"""


def test_the_wheel_brings_the_command(installed: Path) -> None:
    assert "demo" in output_of(installed.with_name("perdure"), "--help", cwd=installed.parent)


def _files_of(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()
