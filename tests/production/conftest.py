"""What these tests share with those of security."""

from __future__ import annotations

from tests.security.conftest import connecting, secured

__all__ = ["connecting", "secured"]
