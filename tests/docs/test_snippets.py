"""Every block of code in the pages does what the page says.

Python is run, page by page, on a real Temporal server; where an agent names a provider's model, a
scripted one speaks. What a page shows as output (a block `text output`) is what was printed.
Commands exist, with their options. Lines of a log can be read.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from perdure import decode_entry, encode_entry
from perdure.codec import decode_record, encode_record
from perdure.dev_server import DevServer
from tests.docs import commands
from tests.docs.markdown import PAGES, Block, Page
from tests.docs.pages import MODELS, NOT_RUN, PRELUDES
from tests.docs.stage import stage
from tests.packaging.source import ROOT

BLOCKS = [block for page in PAGES for block in page.blocks]
LANGUAGES = {"jsonl", "python", "sh", "sql", "text", "toml"}


def each(language: str) -> pytest.MarkDecorator:
    """Give a test each block in that language."""
    blocks = [block for block in BLOCKS if block.language == language]
    return pytest.mark.parametrize("block", blocks, ids=lambda block: block.place)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
async def test_the_python_of_a_page_runs(
    page: Page,
    server: DevServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if page.name == "docs/postgres.md":
        database = await request.getfixturevalue("postgres").new_database()
        monkeypatch.setenv("DATABASE_URL", database)
    blocks = [block for block in page.blocks if "not-run" not in block.options]
    async with stage(server, tmp_path, MODELS.get(page.name, {}), monkeypatch) as on_stage:
        if page.name in PRELUDES:
            await on_stage.prepare(PRELUDES[page.name])
        for block in blocks:
            if block.language == "python":
                if page.name in PRELUDES or "Sessions.connect" in block.text:
                    await on_stage.serve()
                await on_stage.run(block)
            elif "output" in block.options:
                assert on_stage.printed() == block.text, block.place


def test_only_known_blocks_are_not_run() -> None:
    """Each says why, and is on a list; a block cannot be left out by the way."""
    marked = [block for block in BLOCKS if "not-run" in block.options]
    reasons = {(block.page, block.text.partition("\n")[0]): block for block in marked}
    assert {key: block.options["not-run"] for key, block in reasons.items()} == NOT_RUN
    assert len(marked) == len(NOT_RUN)


def test_every_block_says_in_which_of_these_languages_it_is() -> None:
    assert [block.place for block in BLOCKS if block.language not in LANGUAGES] == []


@each("sh")
def test_commands_exist_with_their_options(block: Block) -> None:
    assert commands.faults_in(block.text) == []


@each("jsonl")
def test_lines_of_a_log_are_what_perdure_reads_and_writes(block: Block) -> None:
    for line in block.text.encode().splitlines():
        if b'"session_init"' in line:
            assert encode_record(decode_record(line)) == line
        else:
            entry = decode_entry(line)
            fresh = type(entry).model_validate(json.loads(line))
            assert (fresh, encode_entry(fresh)) == (entry, line)


@each("toml")
def test_toml_can_be_read(block: Block) -> None:
    assert tomllib.loads(block.text)


def test_the_readme_shows_what_the_demo_says() -> None:
    """Its headings and its claims; the numbers differ each time."""
    [excerpt] = [b.text for b in BLOCKS if b.page == "README.md" and "SIGKILL" in b.text]
    verdict = excerpt[excerpt.index("What the log and the journal prove") :]
    headings = re.findall(r"^\d  (.+)$", excerpt, re.MULTILINE)
    claims = [claim.rpartition(", which")[2] for claim in re.findall(r" ✓ (.+)", verdict)]
    source = "".join(path.read_text("utf-8") for path in (ROOT / "perdure/demo").glob("*.py"))
    assert [text for text in (*headings, *claims) if text not in source] == []
    assert (len(headings), len(claims)) == (2, 4)
