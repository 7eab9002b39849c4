"""What is said about an answer that is not the output which its run asked for."""

from __future__ import annotations

from perdure.protocol import EntryJson, ErrorInfo


def told(faults: str) -> EntryJson:
    """What the model reads, so that it can answer again."""
    text = (
        f"The answer is not the JSON that was asked for:\n{faults}\n"
        "Answer again, with nothing but the JSON."
    )
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return {"type": "message", "message": message, "meta": True}


def no_output(answers: int, faults: str) -> ErrorInfo:
    """Why the run fails after so many answers."""
    none = "the answer is not" if answers == 1 else f"none of {answers} answers is"
    message = f"{none} the JSON that was asked for; what is wrong with the last one:\n{faults}"
    return ErrorInfo(type="OutputError", message=message)
