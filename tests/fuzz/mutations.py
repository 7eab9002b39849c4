"""What can happen to bytes: what disks, copies, editors and merges do to a file."""

from __future__ import annotations

from hypothesis import strategies as st

_PIECES = [
    b"",
    b"\n",
    b"\r\n",
    b"\0" * 16,
    b"\xff",
    b"\xef\xbb\xbf",
    b"{}\n",
    b"null\n",
    b"[[[[",
    b'"',
    b"\\ud800",
    b"1e999",
    b"-0",
    b'{"type":"session_init","id":"s"}\n',
    b'{"type":"message","id":"x"}\n',
    b'{"type":"from the future","id":"y"}\n',
    b"[" * 3000,
]


@st.composite
def mutated(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """One of the seeds after some accidents."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 4))):
        data = _accident(draw, data, seeds)
    return data


def _accident(draw: st.DrawFn, data: bytes, seeds: list[bytes]) -> bytes:
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
    kind = draw(
        st.sampled_from(["cut", "lose", "flip", "put", "noise", "repeat", "swap lines", "splice"])
    )
    match kind:
        case "cut":
            return data[:end]
        case "lose":
            return data[:start] + data[end:]
        case "flip":
            bit = 1 << draw(st.integers(0, 7))
            return (
                data[:start] + bytes([data[start] ^ bit]) + data[start + 1 :]
                if data[start:]
                else data
            )
        case "put":
            return data[:start] + draw(st.sampled_from(_PIECES)) + data[start:]
        case "noise":
            return data[:start] + draw(st.binary(max_size=30)) + data[end:]
        case "repeat":
            return data[:end] + data[start:end] + data[end:]
        case "swap lines":
            lines = data.split(b"\n")
            first, second = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
            lines[first], lines[second] = lines[second], lines[first]
            return b"\n".join(lines)
    other = draw(st.sampled_from(seeds))
    return data[:start] + other[draw(st.integers(0, len(other))) :]
