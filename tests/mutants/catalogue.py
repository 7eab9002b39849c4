"""What is broken, and who notices."""

from __future__ import annotations

from tests.mutants.trial import Mutant

_EXPLORER = "tests/model/test_explorer.py::test_no_order_of_things_breaks_a_promise"
_FILES = "tests/stores/test_file_store.py"
_TORN = "tests/stores/test_torn_tails.py"
_CONTRACT = "tests/stores/test_store_contract.py"
_CRASHES = "tests/engine/test_crashes.py"

MUTANTS = [
    # ── stores ──────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "an append is not flushed to disk",
        "perdure/stores/log_writer.py",
        (("        os.fdatasync(descriptor)", "        pass"),),
        (f"{_FILES}::test_one_append_is_one_write_that_is_flushed_before_it_returns",),
    ),
    Mutant(
        "a new name is not flushed to disk",
        "perdure/stores/log_writer.py",
        (
            (
                "    try:\n        os.fsync(descriptor)\n    finally:",
                "    try:\n        pass\n    finally:",
            ),
        ),
        (f"{_FILES}::test_a_session_has_no_name_before_its_record_is_on_disk",),
    ),
    Mutant(
        "an append that failed is not undone",
        "perdure/stores/log_writer.py",
        (("        cut(descriptor, end)\n        raise", "        raise"),),
        (f"{_FILES}::test_an_append_that_fails_is_undone",),
    ),
    Mutant(
        "no lock on the log",
        "perdure/stores/log_writer.py",
        (("            fcntl.flock(descriptor, fcntl.LOCK_EX)\n", ""),),
        (
            "tests/stores/test_file_concurrency.py::test_two_stores_in_one_process_exclude_each_other",
        ),
    ),
    Mutant(
        "the file store adds what it has already",
        "perdure/stores/session_log.py",
        (
            (
                "missing = [line for key, line in lines.items()"
                " if key != present and key not in known]",
                "missing = [line for key, line in lines.items() if key != present]",
            ),
        ),
        (
            # Not the contract: of lines with one ID only the first is loaded.
            f"{_FILES}::test_a_retry_that_adds_nothing_is_flushed_all_the_same",
        ),
    ),
    Mutant(
        "the memory store takes the later of two entries with one ID",
        "perdure/stores/memory.py",
        (("log.setdefault(entry_id, line.data)", "log[entry_id] = line.data"),),
        (f"{_CONTRACT}::test_the_memory_store_keeps_the_contract",),
    ),
    Mutant(
        "PostgreSQL takes the later of two entries with one ID",
        "perdure/stores/postgres/statements.py",
        tuple(
            (
                f"ON CONFLICT (session_key, id) DO NOTHING\n        RETURNING {columns}\n",
                "ON CONFLICT (session_key, id) DO UPDATE SET line = excluded.line\n"
                f"        RETURNING {columns}\n",
            )
            for columns in ("seq", "session_key, seq")
        ),
        ("tests/stores/test_postgres_store.py::test_the_postgres_store_keeps_the_contract",),
    ),
    Mutant(
        "a torn tail is glued to the next append",
        "perdure/stores/session_log.py",
        (
            (
                "            self._set_aside(descriptor, tail.data, start.end)\n",
                "            pass\n",
            ),
        ),
        (f"{_TORN}::test_a_last_line_cut_at_any_byte_is_dropped_and_never_glued_to_the_next",),
    ),
    Mutant(
        "a damaged line ends the log without a word",
        "perdure/stores/log_file.py",
        (
            (
                "            raise DamagedLogError(self.path, numbers[error.index], str(error))"
                " from error",
                "            assert numbers\n"
                "            return decode_entries(texts[: error.index])",
            ),
        ),
        (
            "tests/stores/test_damaged_logs.py::test_damage_names_the_file_and_the_line_and_changes_nothing",
            "tests/fuzz/test_logs.py::test_a_damaged_log_is_read_whole_or_refused_with_its_line",
        ),
    ),
    # ── the workflow ────────────────────────────────────────────────────────────────────────────
    Mutant(
        "events go out before the append",
        "workflows/log.py",
        (
            (
                "                appended: Appended = await workflow.execute_local_activity(",
                "                appending = workflow.start_local_activity(",
            ),
            (
                "                stamped.date(appended)\n",
                "                self._appending = appending  # type: ignore\n"
                "                assert Appended\n",
            ),
        ),
        (f"{_EXPLORER}[a run and a tool, and the store is slow]",),
    ),
    Mutant(
        "outcomes are forgotten at a continue-as-new",
        "workflows/session.py",
        (
            (
                "        self._commands.inbox.lighten()\n",
                "        self._state.outcomes = []\n",
            ),
        ),
        (
            "tests/engine/test_state.py::test_a_command_carries_all_that_it_did_not_change",
            f"{_EXPLORER}[two appends, and a client dies]",
        ),
    ),
    Mutant(
        "what would steer is forgotten at a continue-as-new",
        "workflows/session.py",
        (
            (
                "        self._commands.inbox.lighten()\n",
                "        self._commands.inbox.lighten()\n        self._state.steering = []\n",
            ),
        ),
        (f"{_EXPLORER}[a run that another joins]",),
    ),
    Mutant(
        "the run ends before its handlers have answered",
        "workflows/session.py",
        (
            (
                "        await workflow.wait_condition(workflow.all_handlers_finished)\n",
                "",
            ),
        ),
        (f"{_EXPLORER}[two appends, and a client dies]",),
    ),
    Mutant(
        "a command that comes twice is done twice",
        "workflows/commands.py",
        (
            (
                "        if self.inbox.knows(command.command_id):\n            return\n",
                "",
            ),
        ),
        (f"{_EXPLORER}[two appends, and one comes twice]",),
    ),
    Mutant(
        "the outcome of whoever was told to ask again may be forgotten",
        "workflows/inbox.py",
        (
            (
                "            if place >= old or outcome.command_id in"
                " (*self._awaited, *self._state.owed)",
                "            if place >= old or outcome.command_id in self._awaited",
            ),
        ),
        ("tests/model/test_asking_again.py::test_whoever_was_told_to_ask_again_finds_the_outcome",),
    ),
    Mutant(
        "the update validators let everything through",
        "workflows/verbs.py",
        (
            (
                "        refusal = receiver.refusal(_identified(_read(kind, message)))\n"
                "        if refusal is not None:\n            raise refused(refusal)\n",
                "        assert message\n",
            ),
        ),
        ("tests/engine/test_signals.py::test_a_command_id_is_used_for_one_command[done]",),
    ),
    Mutant(
        "a signal that is no command fails the workflow",
        "workflows/verbs.py",
        (
            (
                "        except ApplicationError as error:\n            receiver",
                "        except NotImplementedError as error:\n            receiver",
            ),
        ),
        ("tests/engine/test_signals.py::test_a_signal_that_is_no_json_is_refused",),
    ),
    Mutant(
        "results of tools are appended side by side",
        "workflows/log.py",
        (
            (
                "        async with self._turn:\n            stamped =",
                "        async with asyncio.Lock():\n            stamped =",
            ),
        ),
        (f"{_EXPLORER}[two tools side by side]",),
    ),
    Mutant(
        "entries get other IDs when a lost task is done again",
        "perdure/stamps.py",
        (
            (
                "_digest(session_id, command_id, str(number), leaf_id, dumps_json(body))",
                "_digest(session_id, command_id, str(number), leaf_id, created_at)",
            ),
        ),
        (
            f"{_EXPLORER}[two appends, and a worker dies]",
            f"{_CRASHES}::test_an_append_that_the_engine_never_heard_of_is_not_repeated[user]",
        ),
    ),
    Mutant(
        "an answer counts for another call of the same ID",
        "workflows/approvals.py",
        (
            (
                "    if command.call_digest is not None:\n"
                "        waiting = [call for call in waiting"
                " if call.call_digest == command.call_digest]\n",
                "    if command.call_digest is not None:\n",
            ),
        ),
        (
            "tests/engine/test_approvals.py::"
            "test_an_answer_to_a_call_that_was_seen_does_not_count_for_another_of_its_id",
        ),
    ),
    # ── activities and views ────────────────────────────────────────────────────────────────────
    Mutant(
        "every tool is retried",
        "workflows/timing.py",
        (
            (
                "maximum_attempts=_IDEMPOTENT_ATTEMPTS if idempotent else 1,",
                "maximum_attempts=_IDEMPOTENT_ATTEMPTS,",
            ),
        ),
        (
            f"{_EXPLORER}[a run and a tool that may run once, and a worker dies]",
            f"{_CRASHES}::test_a_tool_whose_worker_dies_is_answered_as_interrupted_and_the_run_goes_on",
        ),
    ),
    Mutant(
        "a model whose answer is stored is asked again",
        "activities/model_calls.py",
        (
            (
                "await self._stored_before(request) if activity.info().attempt > 1 else None",
                "None",
            ),
        ),
        (f"{_EXPLORER}[a run and a tool that may run once, and a worker dies]",),
    ),
    Mutant(
        "the task of a sub-agent is stored behind itself",
        "workflows/errands.py",
        (('    return "" if stamped.leaf_id == leaf_id else leaf_id', "    return leaf_id"),),
        (
            f"{_EXPLORER}[the errand of a sub-agent, and a worker dies]",
            "tests/tool_sources/test_crashes.py::"
            "test_what_a_sub_agent_is_asked_is_stored_once_when_its_worker_dies_at_that",
        ),
    ),
    Mutant(
        "no tool is retried",
        "workflows/timing.py",
        (
            (
                "maximum_attempts=_IDEMPOTENT_ATTEMPTS if idempotent else 1,",
                "maximum_attempts=1,",
            ),
        ),
        (f"{_CRASHES}::test_an_idempotent_tool_whose_worker_dies_runs_again",),
    ),
    Mutant(
        "a fork does not go on with what it left half-way",
        "activities/forks.py",
        (
            (
                "            if activity.info().attempt == 1 or not await"
                " self._is_ours(request.child_id, copies):\n                raise",
                "            raise",
            ),
        ),
        (
            f"{_EXPLORER}[a fork, and a worker dies]",
            "tests/engine/test_forks.py::test_a_fork_that_dies_half_way_is_completed_by_its_retry",
        ),
    ),
    Mutant(
        "a fork takes over a session that somebody else has just made",
        "activities/forks.py",
        (
            (
                "if activity.info().attempt == 1 or not await self._is_ours",
                "if not await self._is_ours",
            ),
        ),
        ("tests/engine/test_forks.py::test_a_session_that_was_made_meanwhile_is_not_taken_over",),
    ),
    Mutant(
        "calls without a result are not repaired",
        "perdure/views.py",
        (
            (
                "settled + repaired(_messages(path[start:middle]))",
                "settled + list(_messages(path[start:middle]))",
            ),
            ("= repaired(_messages(path[middle:]))", "= list(_messages(path[middle:]))"),
        ),
        (
            "tests/core/test_views.py::test_a_branch_that_leaves_a_call_behind_is_repaired",
            "tests/engine/test_tools.py::"
            "test_orphaned_calls_of_a_resumed_log_are_repaired_in_view_and_not_in_the_log",
        ),
    ),
]

QUICKEST = {
    "an append is not flushed to disk",
    "a torn tail is glued to the next append",
    "calls without a result are not repaired",
}
"""Those that are tried whenever the tests run: of each the first test that notices."""
