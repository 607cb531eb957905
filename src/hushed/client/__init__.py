"""The client of a team server: the same builder, answers with signed certificates. Experimental."""

from hushed.client._client import Client
from hushed.client._connecting import connect
from hushed.client._functions import ServedFunction, ServedRelease
from hushed.client._questions import ServedAnswer, ServedQuote, ServedTable

__all__ = [
    "Client",
    "ServedAnswer",
    "ServedFunction",
    "ServedQuote",
    "ServedRelease",
    "ServedTable",
    "connect",
]
