"""What the demo's tools can see, and that they see no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.demo.project import Project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "perdure" / "stores").mkdir(parents=True)
    (root / "perdure" / "stores" / "files.py").write_text("one\ntwo\n")
    (root / "README.md").write_text("# title\n")
    (root / ".env").write_text("SECRET=1\n")
    (root / "other").mkdir()
    (root / "other" / "data.bin").write_bytes(b"\xff\x00")
    (root / "other" / "again").symlink_to(root / "perdure")
    (root / "other" / "round").symlink_to(root)
    (tmp_path / "outside.txt").write_text("no\n")
    (root / "perdure" / "leak.txt").symlink_to(tmp_path / "outside.txt")
    return root


def test_a_folder_is_listed_without_hidden_files(root: Path) -> None:
    assert Project(root).children(root) == ["README.md", "other/", "perdure/"]


def test_every_text_file_comes_once_whatever_links_to_it(root: Path) -> None:
    project = Project(root)
    assert dict(project.texts(root)) == {
        "README.md": ["# title"],
        "other/again/stores/files.py": ["one", "two"],
    }


def test_an_installed_package_shows_itself_and_no_other(root: Path) -> None:
    project = Project(root, only="perdure")
    assert project.children(project.find(".")) == ["perdure/"]
    assert dict(project.texts(root)) == {"perdure/stores/files.py": ["one", "two"]}
    with pytest.raises(ValueError, match="not in this project"):
        project.find("README.md")


@pytest.mark.parametrize(
    "path",
    ["..", "../outside.txt", "perdure/../../outside.txt", ".env", "perdure/leak.txt", "nowhere"],
)
def test_nothing_outside_is_found(root: Path, path: str) -> None:
    with pytest.raises(ValueError, match="not in this project"):
        Project(root).find(path)


@pytest.mark.parametrize("path", ["/etc/passwd", "C:\\windows"])
def test_an_absolute_path_starts_at_the_root(root: Path, path: str) -> None:
    with pytest.raises(ValueError, match="not in this project"):
        Project(root).find(path)


def test_here_is_this_checkout() -> None:
    assert "perdure/" in Project.here().children(Project.here().root)
