"""Check a statement's tables and columns against the entity registry (NL-7).

This module also lists the permitted functions. Tables are resolved exactly, because they determine what the
statement can access: a name is a table unless a WITH defines it at that point. Columns are only checked by
name, to suggest corrections.
"""

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from orchestrator.tools.guardrails.verdict import Category, Entities, RejectedCode, find_nearest


def find_unknown_name(tree: exp.Expr, entities: Entities | None) -> RejectedCode | None:
    """Return a rejection for a statement's first unknown table or column, or None if all are known.

    If `entities` is None, every unqualified name that is not a file is accepted.
    """
    created = _created_table(tree)
    tables: dict[str, set[str]] = {}
    for table in _base_tables(tree):
        name = _spell(table)
        registered = _find_table(name, table, entities, is_new=table is created)
        if isinstance(registered, RejectedCode):
            return registered
        for called in (name, table.alias_or_name):
            tables.setdefault(called.lower(), set()).add(registered)
    return None if entities is None else _find_unknown_column(tree, tables, entities)


def _base_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    for table in tree.find_all(exp.Table):
        is_plain = isinstance(table.this, exp.Identifier)
        if is_plain and not (not table.db and _is_named_by_with(table)):
            yield table


def _spell(table: exp.Table) -> str:
    return ".".join(part for part in (table.catalog, table.db, table.name) if part)


def _created_table(tree: exp.Expr) -> exp.Expr | None:
    if not isinstance(tree, exp.Create):
        return None
    return tree.this.this if isinstance(tree.this, exp.Schema) else tree.this


def _is_named_by_with(table: exp.Table) -> bool:
    """Return whether a WITH defines the table name at this point.

    Inside a WITH, only earlier names are defined. A recursive WITH also defines its own name, but only in its
    second half. In the first half, the name is the real table.
    """
    name = table.name.lower()
    inner: exp.Expr = table
    outer = table.parent
    while outer is not None:
        clause = outer.args.get("with_")
        if isinstance(clause, exp.With) and _names_visible(clause, inner, table, name):
            return True
        inner, outer = outer, outer.parent
    return False


def _names_visible(clause: exp.With, inner: exp.Expr, table: exp.Table, name: str) -> bool:
    parts = clause.expressions
    if inner is not clause:
        return any(part.alias.lower() == name for part in parts)
    own = next(at for at, part in enumerate(parts) if _contains(part, table))
    if any(part.alias.lower() == name for part in parts[:own]):
        return True
    return (
        bool(clause.recursive) and parts[own].alias.lower() == name and _is_in_second_half(parts[own], table)
    )


def _is_in_second_half(part: exp.Expr, table: exp.Table) -> bool:
    body = part.this
    return isinstance(body, exp.SetOperation) and _contains(body.expression, table)


def _contains(outer: exp.Expr, inner: exp.Expr) -> bool:
    node: exp.Expr | None = inner
    while node is not None and node is not outer:
        node = node.parent
    return node is outer


def _find_table(
    name: str, table: exp.Table, entities: Entities | None, *, is_new: bool
) -> str | RejectedCode:
    known = {} if entities is None else {key.lower(): key for key in entities}
    if name.lower() in known:
        return known[name.lower()]
    if table.db or not _is_plain_name(table.name):
        return RejectedCode(
            Category.FORBIDDEN_SOURCE,
            f"{name!r} is not an available table. Use known table names, without a schema or file.",
            find_nearest(table.name, known.values()),
        )
    if entities is None or is_new:
        return name
    nearest = find_nearest(name, known.values())
    hint = f"Did you mean {nearest}?" if nearest else f"Available: {_list_some(known.values())}."
    return RejectedCode(Category.UNKNOWN_ENTITY, f"Unknown table {name!r}. {hint}", nearest, name)


def _is_plain_name(name: str) -> bool:
    """Return whether a name has only letters, digits, spaces, underscores and dashes (not a path or URL)."""
    return bool(name) and all(letter.isalnum() or letter in "_ -" for letter in name)


# Expressions whose results have columns that the statement does not name.
_MAKE_COLUMNS = (exp.Pivot, exp.Describe, exp.Summarize, exp.Unnest, exp.Lateral, exp.Anonymous)


def _find_unknown_column(
    tree: exp.Expr, tables: Mapping[str, set[str]], entities: Entities
) -> RejectedCode | None:
    """Return a rejection for the first unknown column, or None if all columns are known.

    A column is known if a table in the statement has it, or if the statement defines it. Columns without a
    table name are not checked if a source may have unlisted columns.
    """
    columns_of = {called: _columns_of(keys, entities) for called, keys in tables.items()}
    reachable = {key: column for columns in columns_of.values() for key, column in columns.items()}
    own = _names_made_inside(tree) | set(tables)
    is_open = any(key not in entities for keys in tables.values() for key in keys) or any(
        isinstance(node.this if isinstance(node, exp.Table) else node, _MAKE_COLUMNS)
        for node in tree.find_all(exp.Table, *_MAKE_COLUMNS[:-1])
    )
    for column in tree.find_all(exp.Column):
        name, qualifier = column.name.lower(), column.table.lower()
        if isinstance(column.this, exp.Star) or qualifier in reachable:
            continue  # a star, or a field of a struct column
        columns = columns_of.get(qualifier, reachable)
        if name in columns or (qualifier not in columns_of and (is_open or name in own)):
            continue
        nearest = find_nearest(column.name, columns.values())
        hint = f"Did you mean {nearest}?" if nearest else f"Available: {_list_some(columns.values())}."
        why = f"Unknown column {column.sql()!r}. {hint}"
        return RejectedCode(Category.UNKNOWN_ENTITY, why, nearest, column.name)
    return None


def _columns_of(keys: Iterable[str], entities: Entities) -> dict[str, str]:
    return {column.lower(): column for key in keys for column in entities.get(key, ())}


def _names_made_inside(tree: exp.Expr) -> set[str]:
    """Return the names that a statement defines: aliases, WITH names, lambda parameters and fields."""
    made = {node.alias.lower() for node in tree.find_all(exp.Alias, exp.CTE, exp.Subquery) if node.alias}
    for node in tree.find_all(exp.TableAlias):
        made.update(column.name.lower() for column in node.columns)
        made.add(node.name.lower())
    for node in tree.find_all(exp.Lambda):
        made.update(parameter.name.lower() for parameter in node.expressions)
    made.update(node.name.lower() for node in tree.find_all(exp.PropertyEQ))
    return made


def _list_some(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:12]) or "none"


_ALLOWED = """add age arg_max_null arg_min_null array_aggregate array_apply array_cosine_similarity array_cross_product
    array_distance array_extract array_has_any array_indexof array_inner_product array_pop_back array_pop_front
    array_push_back array_push_front array_reduce array_resize array_select array_to_json array_transform
    array_unique array_value array_where array_zip bar base64 bin bit_count bit_position cardinality century
    count_star damerau_levenshtein date_part date_sub datepart datesub days_in_month decade divide element_at
    entropy epoch_ns epoch_us equi_width_bins era even favg fdiv fmod format_bytes fsum gamma gcd generate_subscripts
    geomean geometric_mean greatest_common_divisor hamming hash histogram histogram_exact isfinite isoyear jaccard
    jaro_similarity json_array_length json_contains json_exists json_group_array json_group_object json_merge_patch
    json_pretty json_quote json_structure json_transform json_valid json_value julian kahan_sum kurtosis_pop lcm
    least_common_multiple left_grapheme length_grapheme lgamma list_aggr list_aggregate list_any_value list_apply
    list_approx_count_distinct list_avg list_bool_and list_bool_or list_cat list_cosine_similarity list_count
    list_dot_product list_element list_entropy list_extract list_first list_grade_up list_has_all list_histogram
    list_indexof list_inner_product list_intersect list_kurtosis list_last list_mad list_median list_mode list_pack
    list_position list_product list_reduce list_resize list_reverse list_select list_sem list_skewness list_slice
    list_stddev_pop list_stddev_samp list_string_agg list_sum list_unique list_var_pop list_var_samp list_where
    list_zip lttb mad make_timestamptz map_concat map_contains map_contains_entry map_contains_value map_entries
    map_extract map_extract_value map_values mean microsecond millennium millisecond mismatches multiply nanosecond
    nfc_normalize now octet_length ord parse_filename prefix printf product regexp_escape regexp_split_to_array
    regexp_split_to_table reservoir_quantile right_grapheme round_even roundbankers row row_to_json sem signbit
    strip_accents strlen struct_concat struct_contains struct_extract_at struct_has struct_insert struct_keys
    struct_position struct_update struct_values subtract suffix sum_no_overflow sumkahan timezone timezone_hour
    timezone_minute to_base to_centuries to_decades to_hours to_json to_microseconds to_millennia to_milliseconds
    to_minutes to_months to_quarters to_seconds to_weeks to_years try_strptime unbin union_extract union_tag
    union_value url_decode url_encode wavg weekday weighted_avg yearweek
    """
ALLOWED = frozenset(_ALLOWED.split())

_REFUSED = """ai_agg ai_classify ai_embed ai_generate ai_similarity ai_summarize_agg current_catalog current_client
    current_database current_ip_address current_role current_schema current_schemas current_session
    current_transaction current_user current_user_id current_version dynamic_identifier host next_value_for
    read_csv read_parquet session_user to_file
    """
REFUSED = frozenset(_REFUSED.split())  # functions that the parser supports but a query must not use

TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest", "repeat", "json_each"})

# Parts in the names of functions that read files, URLs or other databases, or that run text as SQL.
_FILE_FUNCTIONS = "read_ scan glob sniff parquet _csv _json query sqlite postgres mysql"
FILE_FUNCTION_WORDS = tuple(_FILE_FUNCTIONS.split())
