"""Row-level security: a second wall behind the tenant that every statement names.

A policy on each table with a tenant shows a role the rows of one tenant: the one that the transaction has set with
`set_config('tenure.tenant', …, true)`. Without it there are no rows. The setting ends with its transaction, so a pooler
can give the session to anybody. What the owner of the tables does is not restricted (ENABLE, not FORCE): under FORCE a
migration would change no rows and report success. So the application needs a role that owns nothing; a store refuses
to open with one that no policy restricts.

The policy is written so that the planner makes no use of it (`IS TRUE`). Statements name their tenant in the bounds of
the index that they go by; the policy's condition alone would make indexes that begin with the tenant look as good.

What the role may not do itself, functions of the owner do: see the migration that makes them, and `DEFINERS`.
"""
# ruff: noqa: S608 - texts consist of quoted names of the catalogue

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tenure.core.errors import InvalidInput, NotFound, StoreUnavailable, UnsafeRole
from tenure.stores.postgres import address
from tenure.stores.postgres.connection import Connection, connect
from tenure.stores.postgres.errors import Failed, translated
from tenure.stores.sql.server_errors import Lost, unknown

OWNER_URL = "TENURE_OWNER_URL"  # of the role that owns the tables, for migrations and `tenure db rls`
POLICY = "tenure_tenant"
# As PostgreSQL prints it. A subquery is asked once in a statement; the function alone would be called for each row.
CONDITION = "((tenant = ( SELECT current_setting('tenure.tenant'::text, true) AS current_setting)) IS TRUE)"
STORE_WIDE = frozenset({"meta", "migration"})  # facts of the whole store, which everybody may read
# The log and what proves it: the role appends to them and reads them.
APPENDED = frozenset({"event", "event_block", "seal", "pruned_leaves"})
# Functions that run with the owner's rights.
DEFINERS = frozenset(
    {
        "begin_epochs",
        "clear_log",
        "drop_events",
        "log_ends",
        "settle_epochs",
        "tenants_changed",
        "tenants_due",
        "tenants_here",
    }
)
OWNERS = frozenset({"clear_log"})  # of them: only the owner may call it
NEVER_DELETED = frozenset({"epoch"})  # without its row a tenant would have the store's epoch again
VIEWS_INVOKE = 150000  # the first version whose views can have the rights of who asks
_FIRST = ("meta", "epoch", "event", "event_block")  # as every transaction reads them: see `schema.py`
_WAIT = "10s"

_TABLES = """
SELECT c.relname::text, EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'tenant')
FROM pg_class AS c WHERE c.relnamespace = to_regnamespace(?) AND c.relkind IN ('r', 'p') ORDER BY 1
"""
_VIEWS = "SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace(?) AND relkind = 'v' ORDER BY 1"
_HAS_ROLE = "SELECT count(*) FROM pg_roles WHERE rolname = ?"
# The roles that a store was opened to.
_ROLES = """
SELECT DISTINCT r.rolname::text FROM pg_class AS c, aclexplode(c.relacl) AS g JOIN pg_roles AS r ON r.oid = g.grantee
WHERE c.oid = to_regclass(?) AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner ORDER BY 1
"""
_STANDING = """
SELECT current_user::text, r.rolsuper, r.rolbypassrls,
    coalesce(bool_or(pg_has_role(current_user, c.relowner, 'USAGE')), false),
    coalesce(bool_or(c.relrowsecurity), false),
    coalesce(bool_or(c.relrowsecurity AND NOT row_security_active(c.oid)), false), coalesce(min(o.rolname::text), '')
FROM pg_roles AS r LEFT JOIN pg_class AS c ON c.relnamespace = to_regnamespace(?) AND c.relkind IN ('r', 'p')
LEFT JOIN pg_roles AS o ON o.oid = c.relowner
WHERE r.rolname = current_user GROUP BY r.rolsuper, r.rolbypassrls
"""


class Standing(NamedTuple):
    """What the role of a connection is to the tables of a schema."""

    role: str
    is_superuser: bool
    bypasses: bool
    owns: bool
    policies: bool  # are on
    escapes: bool  # they do not restrict it
    owner: str

    @property
    def power(self) -> str:
        """Why no policy restricts the role; empty where one does."""
        if self.is_superuser:
            return "is a superuser"
        if self.bypasses:
            return "has BYPASSRLS"
        return "owns its tables" if self.owns else ""


def standing(connection: Connection, schema: str) -> Standing:
    return Standing(*connection.all(_STANDING, [schema])[0])


def refuse_unsafe(found: Standing, url: str) -> None:
    """Raises UnsafeRole where policies are on and do not restrict the role."""
    if found.escapes:
        raise UnsafeRole(
            f"{url}: row-level security is on, and the role {found.role} {found.power}: it would see every tenant",
            "Open it with the role that `tenure db rls on --role NAME` has prepared; "
            f"a URL of the owner goes into {OWNER_URL}, for migrations alone.",
        )


# --- turning it on and off ---


def turning_on(connection: Connection, schema: str, role: str) -> list[str]:
    """The statements that restrict the role to one tenant at a time. They may be run again."""
    made = [] if connection.all(_HAS_ROLE, [role])[0][0] else [f"CREATE ROLE {_name(role)} LOGIN"]
    return [*made, *_locks(connection, schema), *policies(connection, schema), *grants(connection, schema, role)]


def turning_off(connection: Connection, schema: str) -> list[str]:
    """Without the policies. The roles and what they may do stay: who runs with one continues."""
    texts = _locks(connection, schema)
    for table, _ in connection.all(_TABLES, [schema]):
        place = f"{_name(schema)}.{_name(table)}"
        texts += [f"DROP POLICY IF EXISTS {POLICY} ON {place}", f"ALTER TABLE {place} DISABLE ROW LEVEL SECURITY"]
    return texts


def kept_on(connection: Connection, schema: str) -> list[str]:
    """After a migration: the same for what it has made; nothing where policies are off."""
    if not standing(connection, schema).policies:
        return []
    texts = policies(connection, schema)
    for role in roles(connection, schema):
        texts += grants(connection, schema, role)
    return texts


def roles(connection: Connection, schema: str) -> list[str]:
    """The roles besides the owner that may append to the log."""
    return [role for (role,) in connection.all(_ROLES, [f"{_name(schema)}.event"])]


def policies(connection: Connection, schema: str) -> list[str]:
    texts = []
    for table, has_tenant in connection.all(_TABLES, [schema]):
        if not has_tenant:
            continue
        place = f"{_name(schema)}.{_name(table)}"
        texts += [
            f"ALTER TABLE {place} ENABLE ROW LEVEL SECURITY",
            f"DROP POLICY IF EXISTS {POLICY} ON {place}",
            f"CREATE POLICY {POLICY} ON {place} USING ({CONDITION}) WITH CHECK ({CONDITION})",
        ]
    views = [view for (view,) in connection.all(_VIEWS, [schema])]
    return texts + [f"ALTER VIEW {_name(schema)}.{_name(view)} SET (security_invoker = true)" for view in views]


def grants(connection: Connection, schema: str, role: str) -> list[str]:
    here, whom = _name(schema), _name(role)
    texts = [
        f"REVOKE ALL ON ALL TABLES IN SCHEMA {here} FROM {whom}, PUBLIC",
        f"REVOKE ALL ON SCHEMA {here} FROM {whom}, PUBLIC",
        f"GRANT USAGE ON SCHEMA {here} TO {whom}",
        f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {here} TO {whom}",
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {here} TO {whom}",
        *(f"REVOKE EXECUTE ON FUNCTION {here}.{name}(text) FROM {whom}" for name in sorted(OWNERS)),
    ]
    for table, has_tenant in connection.all(_TABLES, [schema]):
        allowed = allowed_on(table, has_tenant)
        if allowed:
            texts.append(f"GRANT {', '.join(allowed)} ON {here}.{_name(table)} TO {whom}")
    return texts + [f"GRANT SELECT ON {here}.{_name(view)} TO {whom}" for (view,) in connection.all(_VIEWS, [schema])]


def allowed_on(table: str, has_tenant: bool) -> tuple[str, ...]:
    """What the role may do with a table."""
    if table in STORE_WIDE:
        return ("SELECT",)
    if not has_tenant:
        return ()
    if table in APPENDED:
        return ("SELECT", "INSERT")
    return ("SELECT", "INSERT", "UPDATE", *(() if table in NEVER_DELETED else ("DELETE",)))


def _locks(connection: Connection, schema: str) -> list[str]:
    """All tables to itself, in the order in which every transaction takes them."""
    tables = [table for table, _ in connection.all(_TABLES, [schema])]
    names = [*(name for name in _FIRST if name in tables), *(name for name in tables if name not in _FIRST)]
    places = ", ".join(f"{_name(schema)}.{_name(name)}" for name in names)
    return [f"SET LOCAL lock_timeout = '{_WAIT}'", f"LOCK TABLE {places} IN ACCESS EXCLUSIVE MODE"]


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --- checking ---

_ROLE_OF = """
SELECT r.rolcanlogin, r.rolsuper, r.rolbypassrls, r.rolcreaterole,
    EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = n.oid AND pg_has_role(r.oid, c.relowner, 'MEMBER'))
        OR pg_has_role(r.oid, n.nspowner, 'MEMBER'),
    has_schema_privilege(r.oid, n.oid, 'USAGE'), has_schema_privilege(r.oid, n.oid, 'CREATE')
FROM pg_roles AS r, pg_namespace AS n WHERE r.rolname = ? AND n.nspname = ?
"""
_POLICIES_OF = """
SELECT c.relname::text, c.relrowsecurity, EXISTS (SELECT FROM pg_policy AS p WHERE p.polrelid = c.oid AND p.polname = ?
        AND p.polcmd = '*' AND p.polpermissive AND p.polroles = '{0}'
        AND pg_get_expr(p.polqual, c.oid) = ? AND pg_get_expr(p.polwithcheck, c.oid) = ?),
    ARRAY(SELECT p.polname::text FROM pg_policy AS p WHERE p.polrelid = c.oid AND p.polname <> ? AND p.polpermissive)
FROM pg_class AS c WHERE c.relnamespace = to_regnamespace(?) AND c.relkind IN ('r', 'p') ORDER BY 1
"""
_KINDS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
_OF_COLUMNS = ("SELECT", "INSERT", "UPDATE", "REFERENCES")  # may also be granted for some columns alone
_MAY = f"""
SELECT c.relname::text, {", ".join(f"has_table_privilege(r.oid, c.oid, '{kind}')" for kind in _KINDS)},
    {", ".join(f"has_any_column_privilege(r.oid, c.oid, '{kind}')" for kind in _OF_COLUMNS)}
FROM pg_class AS c, pg_roles AS r WHERE c.relnamespace = to_regnamespace(?) AND c.relkind IN ('r', 'p', 'v')
    AND r.rolname = ? ORDER BY 1
"""
_LOOSE_VIEWS = """
SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace(?) AND relkind = 'v'
    AND NOT coalesce('security_invoker=true' = ANY (reloptions), false) ORDER BY 1
"""
_FUNCTIONS = """
SELECT p.proname::text, p.prosecdef, EXISTS (SELECT FROM unnest(p.proconfig) AS s (setting)
        WHERE s.setting LIKE 'search\\_path=pg\\_catalog,%pg\\_temp'),
    EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS g WHERE g.grantee = 0),
    has_function_privilege(r.oid, p.oid, 'EXECUTE')
FROM pg_proc AS p, pg_roles AS r WHERE p.pronamespace = to_regnamespace(?) AND r.rolname = ? ORDER BY 1
"""


def findings(connection: Connection, schema: str, role: str) -> list[str]:
    """Everything that lets the role see more than one tenant, or keeps it from its work; empty where all is well."""
    known = connection.all(_ROLE_OF, [role, schema])
    if not known:
        return [f"role {role}: there is none"]
    found = [] if connection.version >= VIEWS_INVOKE else ["the server is older than 15: its views escape policies"]
    *of_role, uses, creates = known[0]
    found += _unfit(role, *of_role)
    found += [] if uses else [f"role {role}: may not use the schema, and needs to"]
    found += [f"role {role}: may create tables in the schema"] if creates else []
    having: dict[str, bool] = dict(connection.all(_TABLES, [schema]))
    for table, enabled, has_policy, others in connection.all(
        _POLICIES_OF, [POLICY, CONDITION, CONDITION, POLICY, schema]
    ):
        if not having[table]:
            found += [] if table in STORE_WIDE else [f"table {table}: has no column tenant"]
        elif not enabled:
            found.append(f"table {table}: row-level security is off")
        elif not has_policy:
            found.append(f"table {table}: has no policy {POLICY} as tenure writes it")
        found += [f"table {table}: the policy {name} allows more" for name in others]
    for place, *may in connection.all(_MAY, [schema, role]):
        allowed = allowed_on(place, having[place]) if place in having else ("SELECT",)
        of_columns = dict(zip(_OF_COLUMNS, may[len(_KINDS) :], strict=True))
        for kind, of_table in zip(_KINDS, may, strict=False):
            if kind not in allowed and (of_table or of_columns.get(kind)):
                found.append(f"role {role}: may {kind} {place}")
            elif kind in allowed and not of_table:
                found.append(f"role {role}: may not {kind} {place}, and needs to")
    found += [f"view {name}: has the rights of its owner" for (name,) in connection.all(_LOOSE_VIEWS, [schema])]
    for name, is_definer, is_fixed, is_public, may_run in connection.all(_FUNCTIONS, [schema, role]):
        if is_definer:
            found += [] if name in DEFINERS else [f"function {name}: has the rights of its owner, and is not tenure's"]
            found += [] if is_fixed else [f"function {name}: its search path is not fixed"]
            found += [f"function {name}: everybody may call it"] if is_public else []
        if may_run is (name in OWNERS):
            fault = (
                f"may call {name}, which is for the owner alone" if may_run else f"may not call {name}, and needs to"
            )
            found.append(f"role {role}: {fault}")
    return found


def _unfit(role: str, logs_in: bool, is_superuser: bool, bypasses: bool, makes_roles: bool, owns: bool) -> list[str]:
    """What no grant can repair."""
    faults = {
        "cannot log in": not logs_in,
        "is a superuser": is_superuser,
        "has BYPASSRLS": bypasses,
        "has CREATEROLE, so it can make itself the owner": makes_roles,
        "owns tables of the schema, or is a member of a role that does": owns and not is_superuser,
    }
    return [f"role {role}: {text}" for text, is_so in faults.items() if is_so]


# --- as the owner ---

_DATABASE = """
SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()) FROM pg_control_system()
"""
ELSEWHERE = f"{OWNER_URL} does not count: it is of another cluster or database than the store's URL"


@contextmanager
def owning(owner: str | None, connection: Connection) -> Iterator[Connection | None]:
    """A connection of the owner; None where no URL is given, or one of another cluster or database.

    The process may know several stores, and the variable is of one of them.
    """
    if not owner:
        yield None
        return
    other = connect(address.parse(owner).conninfo, connection.patience, prepares=False)
    try:
        yield other if other.all(_DATABASE, []) == connection.all(_DATABASE, []) else None
    finally:
        other.close()


def check_owner(owner: str, url: str) -> None:
    """Raise InvalidInput unless both URLs are of the same cluster and database."""
    connection = connect(address.parse(url).conninfo, 30.0, prepares=False)
    try:
        with owning(owner, connection) as found:
            if found is None:
                raise InvalidInput(ELSEWHERE, f"set it to the URL of the owner there, or unset {OWNER_URL}")
    finally:
        connection.close()


@contextmanager
def as_owner(url: str) -> Iterator[tuple[Connection, str]]:
    """A connection of the owner to a store that exists, and the name of its schema."""
    where = address.parse(url)
    connection = connect(where.conninfo, 30.0, prepares=False)
    try:
        if "migration" not in {name for name, _ in connection.all(_TABLES, [where.schema])}:
            raise NotFound(f"{where.shown}: there is no store in the schema {where.schema}")
        yield connection, where.schema
    except Failed as error:
        raise translated(error, where.shown) from error
    except Lost as error:
        raise unknown(f"the connection was lost ({error})", where.shown) from error
    finally:
        connection.close()


def planned(url: str, action: str, role: str | None) -> list[str]:
    """The statements of `on` or `off`, in order; they belong into one transaction."""
    with as_owner(url) as (connection, schema):
        return _planned(connection, schema, action, role)


def _planned(connection: Connection, schema: str, action: str, role: str | None) -> list[str]:
    if action == "off":
        return turning_off(connection, schema)
    if connection.version < VIEWS_INVOKE:
        raise StoreUnavailable(
            f"row-level security needs PostgreSQL {VIEWS_INVOKE // 10000}; the server is {connection.version // 10000}",
            "The views of older servers have the rights of their owner, whom no policy restricts.",
        )
    if not role:
        raise InvalidInput("name the role of the application", "`tenure db rls on --role tenure_app`")
    known = connection.all(_ROLE_OF, [role, schema])
    unfit = _unfit(role, *known[0][:5]) if known else []
    if unfit:
        raise UnsafeRole("; ".join(unfit), "Name another role: one that does not exist yet is created.")
    return turning_on(connection, schema, role)


def run(url: str, action: str, role: str | None) -> list[str]:
    """Turn it on or off, in one transaction; the statements that were run."""
    with as_owner(url) as (connection, schema):
        texts = _planned(connection, schema, action, role)
        connection.run([("BEGIN", ()), *((text, ()) for text in texts), ("COMMIT", ())])
        return texts


def check(url: str, role: str | None) -> dict[str, list[str]]:
    """The findings of each role; of those that may append to the log, unless one is named."""
    with as_owner(url) as (connection, schema):
        asked = [role] if role else roles(connection, schema)
        return {name: findings(connection, schema, name) for name in asked}
