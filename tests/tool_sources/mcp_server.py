"""A real MCP server: `python -m tests.tool_sources.mcp_server FOLDER [--http PORT] [--kind KIND]`.

Each call writes a line into the folder's journal; a call named in a file `hold-<tool>` waits until
the file is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Audio, Context, Image, MCPServer
from mcp.types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ListToolsResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

PIXEL = b"\x89PNG not quite"


def useful(folder: Path) -> MCPServer[Any]:
    """A server with a tool for each thing that a test wants to see."""
    server: MCPServer[Any] = MCPServer("useful")

    async def step(name: str) -> None:
        with (folder / "journal").open("a") as journal:
            journal.write(f"{name} {os.getpid()}\n")
        while (folder / f"hold-{name}").exists():  # noqa: ASYNC110 - another process lets go
            await asyncio.sleep(0.02)

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await step("add")
        return a + b

    @server.tool()
    async def slow(word: str) -> str:
        """Take as long as the test wants."""
        await step("slow")
        return f"{word}, finally"

    @server.tool()
    async def die() -> str:
        """End the process in the middle of the call."""
        await step("die")
        os._exit(7)

    @server.tool()
    async def fail() -> str:
        """Raise."""
        raise RuntimeError("no such order")

    @server.tool(structured_output=False)
    async def everything() -> list[Any]:
        """One of each kind of content."""
        return [
            "words",
            Image(data=PIXEL, format="png"),
            Audio(data=b"sound", format="wav"),
            ResourceLink(
                type="resource_link",
                name="manual",
                uri="https://shop.example/manual.pdf",
                description="how it works",
                mime_type="application/pdf",
            ),
            EmbeddedResource(
                type="resource",
                resource=TextResourceContents(
                    uri="note://1", text="a note", mime_type="text/plain"
                ),
            ),
            EmbeddedResource(
                type="resource",
                resource=BlobResourceContents(
                    uri="file:///tmp/a.pdf", blob="aGk=", mime_type="application/pdf"
                ),
            ),
        ]

    @server.tool()
    async def only_structured() -> CallToolResult:
        """JSON and no text."""
        return CallToolResult(content=[], structured_content={"price": 7, "name": "Schuh"})

    @server.tool()
    async def has_variable(name: str, length: int) -> bool:
        """Whether the environment has such a variable."""
        return len(os.environ.get(name, "")) == length

    @server.tool()
    async def has_header(name: str, length: int, ctx: Context) -> bool:
        """Whether the request has such a header."""
        return len((ctx.headers or {}).get(name, "")) == length

    @server.tool()
    async def pid() -> int:
        """Which process this is."""
        return os.getpid()

    return server


def bare(*tools: Tool) -> Server[Any]:
    """A server with just these tools, which say their name."""

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=list(tools))

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text=f"{params.name} ran")])

    return Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)


def _tool(name: str) -> Tool:
    return Tool(name=name, description=f"Run {name}.", input_schema={"type": "object"})


async def _serve_bare(server: Server[Any]) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--http", type=int)
    parser.add_argument("--kind", default="useful")
    given = parser.parse_args()
    with (given.folder / "journal").open("a") as journal:
        journal.write(f"started {os.getpid()}\n")
    match given.kind:
        case "garbage":
            print("Welcome to the garbage server!\n{not json}\n[1, 2]\n\x00\x01", flush=True)
            useful(given.folder).run()
        case "empty":
            asyncio.run(_serve_bare(bare()))
        case "twins":
            asyncio.run(_serve_bare(bare(_tool("twin"), _tool("twin"))))
        case "odd-names":
            asyncio.run(_serve_bare(bare(_tool("shop.find/order"), _tool("x" * 100))))
        case _ if given.http:
            useful(given.folder).run("streamable-http", port=given.http)
        case _:
            useful(given.folder).run()


if __name__ == "__main__":
    main()
