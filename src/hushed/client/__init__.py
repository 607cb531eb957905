"""The client of a team server: the same builder, answers with signed certificates. Experimental."""

from hushed.client._connecting import Client, ServedAnswer, ServedQuote, ServedTable, connect

__all__ = ["Client", "ServedAnswer", "ServedQuote", "ServedTable", "connect"]
