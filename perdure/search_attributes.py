"""The search attributes of sessions: whether the server knows them, and how it learns them.

They are optional. A server that does not know one refuses the workflow task that sets it, so a
worker asks first, and sets all of them or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from perdure import names
from perdure.errors import ServerError

ATTRIBUTES: Final[Mapping[str, str]] = {
    names.SESSION_STATUS: "Keyword",
    names.SESSION_TURNS: "Int",
    names.SESSION_PARENT: "Keyword",
    names.SESSION_AGENT: "Keyword",
}
"""Their names and types, as the Temporal CLI takes them."""

_TYPES: Final = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "Int": IndexedValueType.INDEXED_VALUE_TYPE_INT,
}


async def are_registered(client: Client) -> bool:
    """Whether the server knows all of them, as what they are. Raises RPCError when it does not
    tell.
    """
    known = await _known(client)
    return all(known.get(name) == _TYPES[kind] for name, kind in ATTRIBUTES.items())


async def register(client: Client) -> list[str]:
    """Make the server know those that it does not know yet; answers with their names.

    Raises ServerError when one is taken for something else, when there is no room for more, or
    when whoever connects may not do this.
    """
    namespace = client.namespace
    try:
        known = await _known(client)
        for name, kind in ATTRIBUTES.items():
            if known.get(name, _TYPES[kind]) != _TYPES[kind]:
                raise ServerError(
                    f"the search attribute {name} of namespace {namespace!r} is of another type "
                    f"than {kind}; remove it, or use another namespace. Sessions run without"
                )
        missing = [name for name in ATTRIBUTES if name not in known]
        if missing:
            request = AddSearchAttributesRequest(
                namespace=namespace,
                search_attributes={name: _TYPES[ATTRIBUTES[name]] for name in missing},
            )
            await client.operator_service.add_search_attributes(request)
    except RPCError as error:
        raise _refused(error, namespace) from None
    return missing


async def _known(client: Client) -> dict[str, IndexedValueType.ValueType]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    told = await client.operator_service.list_search_attributes(request)
    return dict(told.custom_attributes)


def _refused(error: RPCError, namespace: str) -> ServerError:
    if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED):
        named = ", ".join(f"{name} ({kind})" for name, kind in ATTRIBUTES.items())
        return ServerError(
            f"whoever connects may not register search attributes in namespace {namespace!r}; "
            f"let an administrator register {named}. Sessions run without"
        )
    return ServerError(
        f"the search attributes were not registered in namespace {namespace!r}: {error.message}. "
        "Sessions run without"
    )
