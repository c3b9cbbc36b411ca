"""The functions that guarded SQL may call: data, no logic.

An allow-list, because every release of a database brings new functions. Functions that the parser
knows by kind (sum, coalesce, date_trunc …) are allowed unless they are named in `REFUSED`.
"""

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
REFUSED = frozenset(_REFUSED.split())
"""Known to the parser, and none of a query's business."""

TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest", "repeat", "json_each"})

FILE_FUNCTION_WORDS = (
    "read_",
    "scan",
    "glob",
    "sniff",
    "parquet",
    "_csv",
    "_json",
    "query",
    "sqlite",
    "postgres",
    "mysql",
)
"""What names of functions that read files, addresses, other databases, or text as SQL have in them."""
