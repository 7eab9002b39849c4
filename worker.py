"""The worker process: `PERDURE_AGENTS=support:agent python worker.py`."""

from __future__ import annotations

import asyncio
import logging
import sys

from perdure.errors import PerdureError
from perdure.worker import serve_from_environment


def main() -> int:
    """Serve until told to stop. Answers with the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        asyncio.run(serve_from_environment())
    except PerdureError as error:
        print(f"worker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
