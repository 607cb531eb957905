"""What other logins of PostgreSQL have put where this one looks for functions and operators.

Of functions and operators with one name, PostgreSQL calls the one that fits the types of a call
best, in whichever schema of the search path it lies, and with the rights of who calls.
"""

from __future__ import annotations

from typing import Any

from hushed._printing import shown
from hushed.errors import ParameterError

# Superusers, and this login, have its rights anyway. Nothing here is looked up by a path.
_PLANTED = """
  SELECT each.name FROM (
    SELECT p.proname, p.proowner, p.pronamespace, false FROM pg_catalog.pg_proc p
    UNION ALL SELECT o.oprname, o.oprowner, o.oprnamespace, true FROM pg_catalog.pg_operator o
  ) AS each (name, owner, place, operates)
  JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) each.place
  JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) each.owner
  WHERE n.nspname OPERATOR(pg_catalog.=) ANY (pg_catalog.current_schemas(true))
    AND n.nspname OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.name
    AND NOT r.rolsuper AND r.rolname OPERATOR(pg_catalog.<>) CURRENT_USER
    AND CASE WHEN operates THEN EXISTS (SELECT FROM pg_catalog.pg_operator o
        WHERE o.oprname OPERATOR(pg_catalog.=) each.name
        AND o.oprnamespace OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace)
      ELSE EXISTS (SELECT FROM pg_catalog.pg_proc p
        WHERE p.proname OPERATOR(pg_catalog.=) each.name
        AND p.pronamespace OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace) END
  LIMIT 1"""


def check_search_path(driver: Any) -> None:
    """Refuse functions and operators of other logins that have a name of PostgreSQL's own."""
    found = driver.execute(_PLANTED).fetchone()
    if found is not None:
        raise ParameterError(
            f"another login has made {shown(found[0])} in a schema of the search_path, where it "
            "may be called in place of PostgreSQL's own, with the rights of this login: leave that "
            "schema out of the search_path, or drop it there and REVOKE CREATE ON SCHEMA ... FROM "
            "PUBLIC"
        )
