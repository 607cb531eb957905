"""Ledgers on PostgreSQL: who may do what, kept by the server and not by this library.

Nobody needs a right on the tables but their owner. Spenders read and append through functions that
run with the owner's rights and know who is logged in: what belongs to others is read without its
note, key and question, and answers are for those who paid for them.
"""

# ruff: noqa: S608  (every text here is a constant)
from __future__ import annotations

from hushed.ledger._laws import LAWS, Form, Law

LONGEST_ENTRY = 2_000_000  # characters; the longest law, note and question take less
LONGEST_ANSWER = 500_000_000  # characters; a database takes 1 GB
# Whether an entry is the caller's own, or the caller may read the table anyway.
_MINE = "(e.author = session_user OR has_table_privilege(session_user, e.tableoid, 'SELECT'))"
_SIGNATURES = {
    "hushed_head(TEXT)": "reads and locks the end of a chain",
    "hushed_seen(TEXT, INTEGER, INTEGER)": "reads entries; of others only what they cost",
    "hushed_append(TEXT, INTEGER, TEXT, TEXT)": "appends the next entry",
    "hushed_keep(TEXT, INTEGER, TEXT, TEXT)": "stores the answer of an entry of one's own",
    "hushed_answer(TEXT, INTEGER)": "reads an answer of one's own",
    "hushed_answered(TEXT)": "lists the entries of one's own that have answers",
}
# All else is looked up in pg_catalog alone: no table, function or operator of others may stand in,
# and run with the rights of the owner.
PINNED = "SET search_path = pg_catalog, pg_temp AS $$"
_DEFINER = f"SECURITY DEFINER {PINNED}"
# The text of an entry as `write_entry` writes it, letter by letter: of another form, it could stop
# whoever reads the budget. Commas between items need no care, for the text has to be JSON, too.
_PLAIN = r"[ !#-\[\]-~]"
_WORD = rf'"({_PLAIN}|\\["\\/bfnrt]|\\u[0-9a-f]{{4}})*"'
_SMALL = "p-([0-9]{1,3}|10[0-6][0-9]|107[0-4])"
_FINITE = f"0x[01][.][0-9a-f]{{1,13}}({_SMALL}|p[+]([0-9]{{1,3}}|10[01][0-9]|102[0-3]))"
_AMOUNT = f'"({_FINITE}|inf)"'
_SHARE = f'"0x(0[.]0p[+]0|[01][.][0-9a-f]{{1,13}}(?!p-0){_SMALL})"'  # below 1
_NUMBER = f'"-?({_FINITE}|inf)"'
_COUNT = "[1-9][0-9]{0,8}"
_FORMS: dict[Form, str] = {
    "amount": _AMOUNT,
    "count": _COUNT,
    "number": _NUMBER,
    "number or null": f"(null|{_NUMBER})",
    "numbers": rf"\[({_NUMBER},?)*\]",
}


def _write_form(name: str, law: Law) -> str:
    """Text of a law of this name, its parts by the alphabet, as JSON is written."""
    parts = {field: _FORMS[form] for field, form in law.fields.items()}
    parts |= {"count": _COUNT, "law": f'"{name}"'}
    return ",".join(f'"{field}":{parts[field]}' for field in sorted(parts))


LAW = "[{](" + "|".join(_write_form(name, law) for name, law in LAWS.items()) + ")[}]"
_PROMISE = (
    rf'[{{]"data_dependent":(true|false),"delta":("0x1[.]0p[+]0"|{_SHARE}),("distance":{_COUNT},)?'
    rf'"epsilon":{_AMOUNT},'
    rf'"estimates":\[(\[{_WORD},{_SHARE}\],?)*\],"gamma":{_SHARE},"marginal":(true|false),'
    r'"neighbours":"(replace-one|add-remove)","protect":"(record|everyone|simultaneous|table)",'
    r'"unit":"(row|user)"[}]'
)
_ENTRY = (
    rf'\A[{{]"at":"[0-9T:.+-]+","budget":{_WORD},"costs":\[(\[{_AMOUNT},"{_FINITE}"\],?)+\],'
    rf'"guarantee":{_PROMISE},("key":{_WORD},)?"kind":"charge",("law":\[({LAW},?)+\],)?'
    rf'"note":{_WORD},"number":[0-9]+(,"question":{_WORD})?[}}]\Z'
)

_FUNCTIONS = (
    f"""CREATE FUNCTION @.hushed_head(asked TEXT) RETURNS TABLE (entries INTEGER, digest TEXT)
LANGUAGE sql {_DEFINER}
  SELECT h.entries, h.digest FROM @.hushed_heads h WHERE h.budget = asked FOR UPDATE
$$""",
    f"""CREATE FUNCTION @.hushed_seen(asked TEXT, after INTEGER, most INTEGER)
RETURNS TABLE (number INTEGER, body TEXT, digest TEXT, mine BOOLEAN)
LANGUAGE sql STABLE {_DEFINER}
  SELECT e.number,
    CASE WHEN {_MINE} THEN e.body
      ELSE (e.body::jsonb - 'note' - 'key' - 'question' || '{{"note": ""}}'::jsonb)::text END,
    e.digest, {_MINE}
  FROM @.hushed_entries e WHERE e.budget = asked AND e.number > after ORDER BY e.number LIMIT most
$$""",
    f"""CREATE FUNCTION @.hushed_append(asked TEXT, place INTEGER, content TEXT, link TEXT)
RETURNS INTEGER LANGUAGE plpgsql {_DEFINER}
DECLARE
  head @.hushed_heads%ROWTYPE;
  filters INTEGER;
  told JSONB := content::jsonb;
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);  -- a pooler may forget what was set
  SELECT * INTO head FROM @.hushed_heads h WHERE h.budget = asked FOR UPDATE;
  SELECT jsonb_array_length(b.body::jsonb -> 'filters') INTO filters
    FROM @.hushed_budgets b WHERE b.name = asked;
  IF head.budget IS NULL OR place <> head.entries + 1 OR length(content) > {LONGEST_ENTRY}
    OR (content ~ $form${_ENTRY}$form$) IS NOT TRUE
    OR told ->> 'budget' IS DISTINCT FROM asked
    OR told -> 'number' IS DISTINCT FROM to_jsonb(place)
    OR link IS DISTINCT FROM
      encode(sha256(convert_to(head.digest || chr(10) || content, 'UTF8')), 'hex')
    OR jsonb_array_length(told -> 'costs') IS DISTINCT FROM filters
    OR (SELECT count(*) <> count(DISTINCT named.pair ->> 0)
      FROM jsonb_array_elements(told #> '{{guarantee,estimates}}') AS named (pair))
  THEN RAISE EXCEPTION 'a ledger takes the next entry of its chain and nothing else'; END IF;
  INSERT INTO @.hushed_entries (budget, number, body, digest) VALUES (asked, place, content, link);
  UPDATE @.hushed_heads SET entries = place, digest = link WHERE budget = asked;
  RETURN place;
END $$""",
    f"""CREATE FUNCTION @.hushed_keep(asked TEXT, place INTEGER, content TEXT, link TEXT)
RETURNS VOID LANGUAGE plpgsql {_DEFINER}
BEGIN
  PERFORM set_config('synchronous_commit', 'on', true);
  IF length(content) > {LONGEST_ANSWER} OR NOT EXISTS (
    SELECT FROM @.hushed_entries e WHERE e.budget = asked AND e.number = place AND {_MINE}
    AND link = encode(sha256(convert_to(e.digest || chr(10) || content, 'UTF8')), 'hex'))
  THEN RAISE EXCEPTION 'a ledger takes the answer of an entry of one''s own and nothing else';
  END IF;
  INSERT INTO @.hushed_answers VALUES (asked, place, content, link) ON CONFLICT DO NOTHING;
END $$""",
    f"""CREATE FUNCTION @.hushed_answer(asked TEXT, place INTEGER)
RETURNS TABLE (body TEXT, digest TEXT, entry TEXT) LANGUAGE sql STABLE {_DEFINER}
  SELECT a.body, a.digest, e.digest FROM @.hushed_answers a
  JOIN @.hushed_entries e ON e.budget = a.budget AND e.number = a.number
  WHERE a.budget = asked AND a.number = place AND {_MINE}
$$""",
    f"""CREATE FUNCTION @.hushed_answered(asked TEXT) RETURNS TABLE (number INTEGER)
LANGUAGE sql STABLE {_DEFINER}
  SELECT a.number FROM @.hushed_answers a
  JOIN @.hushed_entries e ON e.budget = a.budget AND e.number = a.number
  WHERE a.budget = asked AND {_MINE} ORDER BY a.number
$$""",
)
FUNCTIONS = (*_FUNCTIONS, *(f"REVOKE ALL ON FUNCTION @.{each} FROM PUBLIC" for each in _SIGNATURES))

_SPEND = "\n".join(
    f"GRANT EXECUTE ON FUNCTION {each} TO hushed_analyst;  -- {what}"
    for each, what in _SIGNATURES.items()
)
_TABLES = ("migrations", "budgets", "entries", "heads", "answers")
_OWN = (*(f"hushed_{each}" for each in _TABLES), *(each.split("(")[0] for each in _SIGNATURES))
_NAMES = ", ".join(f"'{each}'" for each in _OWN)
ROLES = f"""\
-- Rights on a ledger, for its owner to run once, in the schema and database that it lies in,
-- after the first budget was opened:  hushed ledger roles | psql DATABASE
-- Analysts append, and read what is spent, their own notes, keys and answers. They cannot change
-- or delete anything, open budgets, read what others asked, or store answers for others.
-- Auditors read everything, and write nothing.
BEGIN;
DO $$ DECLARE
  place TEXT := pg_catalog.current_schema();
  path TEXT := pg_catalog.current_setting('search_path');
  others TEXT;
BEGIN
  IF pg_catalog.has_schema_privilege('public', place, 'CREATE') THEN RAISE EXCEPTION
  'everybody may create functions in schema %, which could run with the rights of its owner: first '
  'REVOKE CREATE ON SCHEMA % FROM PUBLIC', place, place; END IF;
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  SELECT string_agg(DISTINCT held.name || ' (' || CASE granted.grantee WHEN 0 THEN 'PUBLIC'
    ELSE pg_get_userbyid(granted.grantee) END || ')', ', ') INTO others FROM (
    SELECT relname, relnamespace, relowner, relacl FROM pg_class UNION ALL
    SELECT relname, relnamespace, relowner, attacl FROM pg_class, pg_attribute a
      WHERE a.attrelid = pg_class.oid UNION ALL
    SELECT proname, pronamespace, proowner, proacl FROM pg_proc) held (name, home, owner, rights)
    CROSS JOIN LATERAL aclexplode(held.rights) granted
    WHERE held.home = to_regnamespace(quote_ident(place)) AND held.name IN ({_NAMES})
    AND granted.grantee <> held.owner
    AND granted.grantee NOT IN
      (SELECT oid FROM pg_roles WHERE rolname IN ('hushed_analyst', 'hushed_auditor'));
  IF others IS NOT NULL THEN RAISE EXCEPTION 'others than the owner have rights on the ledger, '
  'perhaps by default privileges: first REVOKE ALL ON %', others; END IF;
  PERFORM pg_catalog.set_config('search_path', path, true);
END $$;
CREATE ROLE hushed_analyst NOLOGIN;
CREATE ROLE hushed_auditor NOLOGIN;
GRANT SELECT ON hushed_migrations, hushed_budgets, hushed_heads TO hushed_analyst;
{_SPEND}
GRANT SELECT ON hushed_migrations, hushed_budgets, hushed_heads, hushed_entries, hushed_answers
  TO hushed_auditor;
GRANT EXECUTE ON FUNCTION hushed_seen(TEXT, INTEGER, INTEGER), hushed_answer(TEXT, INTEGER),
  hushed_answered(TEXT) TO hushed_auditor;
COMMIT;
-- Then, for each person, who logs in by a name of their own:
--   CREATE ROLE ada LOGIN PASSWORD '...'; GRANT hushed_analyst TO ada;
"""
