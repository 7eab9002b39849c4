from __future__ import annotations

from perdure.messages import Message
from perdure.repair import repaired
from tests.core.building import assistant, call, interrupted, result, user


def test_what_is_paired_already_stays_as_it_is() -> None:
    messages = [user("go"), assistant(call("x"), call("y")), result("y"), result("x"), user("ok")]
    assert repaired(messages) == messages


def test_calls_without_a_result_are_answered_in_call_order_after_the_results_that_are_there() -> (
    None
):
    """4.4: the error result `tool execution interrupted`."""
    messages = [assistant(call("x", "p"), call("y", "q"), call("z", "r")), result("y"), user("ok")]
    assert repaired(messages) == [
        messages[0],
        result("y"),
        interrupted("x", "p"),
        interrupted("z", "r"),
        user("ok"),
    ]
    assert repaired(messages[:1]) == [
        messages[0],
        interrupted("x", "p"),
        interrupted("y", "q"),
        interrupted("z", "r"),
    ]


def test_calls_that_the_provider_ran_itself_are_left_alone() -> None:
    """4.4: they have no result messages."""
    hosted = call("x").model_copy(update={"server": True})
    assert repaired([assistant(hosted)]) == [assistant(hosted)]
    assert repaired([assistant(hosted), result("x")]) == [assistant(hosted)]


def test_calls_that_a_user_seems_to_make_are_no_calls() -> None:
    quoted = Message(role="user", content=[call("x")])
    assert repaired([quoted, result("x")]) == [quoted]


def test_a_result_whose_call_is_not_in_view_is_left_out() -> None:
    """4.5: a provider refuses it."""
    assert repaired([result("x"), user("hi"), result("y")]) == [user("hi")]
    assert repaired([assistant("hi"), result("x")]) == [assistant("hi")]


def test_a_second_result_for_one_call_is_left_out() -> None:
    """4.5: the first one stands."""
    messages = [assistant(call("x")), result("x", "first"), result("x", "second")]
    assert repaired(messages) == messages[:2]


def test_a_result_that_comes_later_is_left_out_and_its_call_was_interrupted() -> None:
    """4.5: a result stands directly after the message that called it."""
    for between in (user("wait"), assistant("hm")):
        messages = [assistant(call("x")), between, result("x")]
        assert repaired(messages) == [messages[0], interrupted("x"), between]


def test_of_two_calls_with_one_id_in_one_message_both_are_answered() -> None:
    """4.5: by the results that are there first, in file order."""
    calls = assistant(call("x", "p"), call("x", "q"))
    both = [calls, result("x", "1"), result("x", "2")]
    assert repaired(both) == both
    assert repaired([*both, result("x", "3")]) == both
    assert repaired(both[:2]) == [*both[:2], interrupted("x", "q")]
    assert repaired(both[:1]) == [calls, interrupted("x", "p"), interrupted("x", "q")]


def test_one_id_in_two_messages_is_two_calls() -> None:
    messages = [assistant(call("x")), result("x", "1"), assistant(call("x")), result("x", "2")]
    assert repaired(messages) == messages


def test_calls_and_results_without_an_id_are_paired_too() -> None:
    messages = [assistant(call("")), result("")]
    assert repaired(messages) == messages


def test_repair_changes_nothing_that_it_was_given() -> None:
    """4.4: a projection."""
    messages = [assistant(call("x")), user("ok")]
    repaired(messages)
    assert messages == [assistant(call("x")), user("ok")]
