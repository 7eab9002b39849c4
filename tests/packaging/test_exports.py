"""The flat namespace that users import from."""

import perdure
from tests.packaging.source import loaded_with_perdure, modules, within


def test_exported_names_are_sorted_and_exported_once() -> None:
    assert list(perdure.__all__) == sorted(set(perdure.__all__))


def test_every_exported_name_is_there() -> None:
    assert [name for name in perdure.__all__ if not hasattr(perdure, name)] == []


def test_every_exported_name_is_listed_by_dir() -> None:
    assert set(perdure.__all__) <= set(dir(perdure))


def test_no_module_hides_an_exported_name() -> None:
    """A module that is imported takes its own name in the package."""
    exported = {f"perdure.{name}" for name in perdure.__all__}
    assert exported & modules().keys() == set()


def test_importing_perdure_loads_no_provider_sdk_and_no_workflow_code() -> None:
    loaded = loaded_with_perdure()
    assert within(loaded, "anthropic", "google.genai", "openai", "pydantic_ai") == []
    assert within(loaded, "perdure.activities", "perdure.workflows", "temporalio.worker") == []
