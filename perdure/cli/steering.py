"""The commands that change a session: `append`, `branch`, `fork`, `compact`, `cancel`,
`close`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.cli import options
from perdure.cli.place import Place

commands = typer.Typer()


@commands.command()
@options.on_session
def append(
    place: Place,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT…]",
            help="What a person says, an entry each; - reads it from standard input.",
            show_default=False,
        ),
    ] = None,
    entries: Annotated[
        list[str] | None,
        typer.Option(
            "--entry",
            metavar="JSON",
            help="An entry as in a log, without id, parent_id and created_at. May be repeated.",
            show_default=False,
        ),
    ] = None,
    meta: Annotated[
        bool, typer.Option("--meta", help="The model sees the texts, the transcript does not.")
    ] = False,
    agent: options.Agent = None,
    as_json: options.Json = False,
) -> None:
    """Record entries without running the agent; print their IDs.

    \b
    perdure append user-42 "By the way, I moved to Ghent."
    perdure append user-42 --entry '{"type":"custom","kind":"note","body":"VIP"}'
    """
    from perdure.cli.verbs import append as append_entries
    from perdure.cli.verbs import read_entries

    if not texts and not entries:
        raise typer.BadParameter("nothing to append; give a TEXT, or an entry with --entry")
    said = [given for text in texts or [] if (given := options.given_text(text)) is not None]
    append_entries(
        place,
        read_entries(said, entries or [], meta=meta),
        agent=agent,
        as_json=as_json,
    )


@commands.command()
@options.on_session
def branch(
    place: Place,
    entry: Annotated[
        str | None,
        typer.Argument(
            metavar="ENTRY",
            help="The entry to go back to, or the beginning of its ID; `perdure tree` has them.",
            show_default=False,
            autocompletion=options.complete_entry,
        ),
    ] = None,
    before: Annotated[
        bool, typer.Option("--before", help="Go to the place before the entry, to say it anew.")
    ] = False,
    to_start: Annotated[
        bool, typer.Option("--to-start", help="Go to the place before the first entry.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Go back to an earlier entry. What comes after it stays, as a branch of its own.

    To say something anew, go to the place before it, and run.

    \b
    perdure branch user-42 9f2c41
    perdure branch user-42 9f2c41 --before
    perdure branch user-42 --to-start
    """
    from perdure.cli.verbs import branch as move_leaf

    if bool(entry) == to_start or (before and to_start):
        raise typer.BadParameter("name the ENTRY to go back to, or say --to-start")
    move_leaf(place, entry or "", before=before, as_json=as_json)


@commands.command()
@options.on_session
def fork(
    place: Place,
    new_id: Annotated[
        str,
        typer.Argument(metavar="NEW_ID", help="The ID of the new session.", show_default=False),
    ],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="ENTRY",
            help="Copy the path to this entry. Otherwise the one to the leaf.",
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Copy the conversation into a new session, which then goes its own way.

    \b
    perdure fork user-42 user-42/what-if
    perdure fork user-42 user-42-b --at 9f2c41
    """
    from perdure.cli.verbs import fork as make_child

    make_child(place, new_id, at=at, as_json=as_json)


@commands.command()
@options.on_session
def compact(
    place: Place,
    keep_turns: Annotated[
        int, typer.Option("--keep-turns", metavar="N", min=0, help="Keep the last N turns as is.")
    ] = 0,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            metavar="TEXT",
            help="What to ask the model for, in place of perdure's own words.",
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Have the agent's model summarize the conversation. Nothing is deleted.

    \b
    perdure compact user-42 --keep-turns 2
    """
    from perdure.cli.verbs import compact as summarize

    summarize(place, keep_turns=keep_turns, prompt=prompt, as_json=as_json)


@commands.command()
@options.on_session
def cancel(
    place: Place,
    run_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="The ID of the run, also of one that waits. Otherwise the one in progress.",
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Stop a run, or take it from the queue. The session is then ready for the next.

    \b
    perdure cancel user-42
    """
    from perdure.cli.verbs import cancel as stop

    stop(place, run_id, as_json=as_json)


@commands.command()
@options.on_session
def close(
    place: Place,
    as_json: options.Json = False,
) -> None:
    """End the session's workflow, after what waits. The store keeps it, the next run resumes it.

    \b
    perdure close user-42
    """
    from perdure.cli.verbs import close as end

    end(place, as_json=as_json)
