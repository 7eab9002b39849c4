"""Which part of perdure may know which: the directions of the map in CONTRIBUTING.md."""

from graphlib import CycleError, TopologicalSorter

import pytest

from tests.packaging.source import imports_of, loaded_with, modules, within

# All that may load Temporal's SDK. Whatever is not named here is core, and loads without it.
TEMPORAL_SIDE = (
    "perdure.activities",
    "perdure.cli",
    "perdure.client",
    "perdure.data_conversion",
    "perdure.demo",
    "perdure.deployments",
    "perdure.dev_server",
    "perdure.encryption.codec_server",
    "perdure.encryption.payloads",
    "perdure.in_process",
    "perdure.large_payloads",
    "perdure.lifecycle",
    "perdure.output_run",
    "perdure.payload_cleaning",
    "perdure.payload_files",
    "perdure.payload_rows",
    "perdure.plugin",
    "perdure.protocol",
    "perdure.remote",
    "perdure.run",
    "perdure.run_events",
    "perdure.search_attributes",
    "perdure.session",
    "perdure.stamps",
    "perdure.telemetry",
    "perdure.trace_headers",
    "perdure.unreadable",
    "perdure.wire",
    "perdure.worker",
    "perdure.workflows",
)

PROVIDER_SDKS = ("anthropic", "google.genai", "httpx", "httpx2", "openai", "pydantic_ai")


def core() -> set[str]:
    every_module = modules().keys() - {"perdure"}
    return every_module - set(within(every_module, *TEMPORAL_SIDE))


def test_the_core_loads_without_temporal() -> None:
    assert {"perdure.agent", "perdure.entries", "perdure.stores", "perdure.transcript"} <= core()
    assert within(loaded_with(*sorted(core())), "temporalio") == []


def test_the_core_loads_no_provider_sdk_until_a_model_is_made() -> None:
    without_adapters = {
        name for name in core() if not name.startswith("perdure.models.pydantic_ai")
    }
    assert within(loaded_with(*sorted(without_adapters)), *PROVIDER_SDKS) == []


def test_workflow_code_reaches_nothing_that_does_io() -> None:
    workflows = within(modules().keys(), "perdure.workflows")
    loaded = loaded_with(*workflows)
    assert set(workflows) <= loaded
    assert within(loaded, *PROVIDER_SDKS) == []
    assert within(loaded, "perdure.activities", "perdure.client", "perdure.stores") == []


def test_the_client_starts_the_workflow_by_name() -> None:
    assert within(loaded_with("perdure.client"), "perdure.activities", "perdure.workflows") == []


def test_imports_inside_perdure_have_no_cycle() -> None:
    known = modules()
    graph = {name: imports_of(path, known) - {name} for name, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_no_module_takes_from_the_root_what_it_can_take_from_its_home() -> None:
    known = modules()
    root_takers = [name for name, path in known.items() if "perdure" in imports_of(path, known)]
    assert root_takers == []
