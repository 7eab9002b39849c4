"""An MCP server: what the shop has in stock. `clerk.py` starts it."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("shop")

STOCK = {"walking boots": 3, "sandals": 0}


@server.tool()
def stock(shoe: str) -> int:
    """How many pairs of a shoe are in stock."""
    return STOCK.get(shoe, 0)


if __name__ == "__main__":
    server.run()
