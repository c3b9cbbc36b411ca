"""Redis keys and PostgreSQL tables used by the hand-written task and the other frameworks.

A session's turns wait in a Redis list. A flag shows that the session already has a scheduled task, so that its turns
run one after another. Replies return through a list per session, and a counter contains the total number of replies.
"""

QUEUE = "by_hand"
TASK = "by_hand.run"
DONE = "hand:done"
PROCESSES = 2
"""Number of prefork processes, each of which runs one turn at a time. Higher concurrency uses threads instead."""
TABLES = (
    """CREATE TABLE IF NOT EXISTS by_hand_sessions
       (session_id text PRIMARY KEY, version bigint NOT NULL, state text NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS by_hand_turns
       (session_id text, version bigint, text text, reply text, PRIMARY KEY (session_id, version))""",
)
BEGIN = "INSERT INTO by_hand_sessions VALUES (%s, 0, %s)"
LOAD = "SELECT version, state FROM by_hand_sessions WHERE session_id = %s"
SAVE = """
    WITH saved AS (
        UPDATE by_hand_sessions SET state = %(state)s, version = version + 1
        WHERE session_id = %(session)s AND version = %(version)s
        RETURNING version)
    INSERT INTO by_hand_turns SELECT %(session)s, version, %(text)s, %(reply)s FROM saved"""

SUBMIT = """
    redis.call('RPUSH', KEYS[1], ARGV[1])
    return redis.call('SET', KEYS[2], '1', 'NX') and 1 or 0"""
FINISH = """
    redis.call('LPOP', KEYS[1])
    redis.call('LPUSH', KEYS[3], ARGV[1])
    redis.call('INCR', KEYS[4])
    if redis.call('LLEN', KEYS[1]) > 0 then return 1 end
    redis.call('DEL', KEYS[2])
    return 0"""


def keys(session: str) -> list[str]:
    """Return the Redis keys of the session's queue, flag and replies, and of the shared counter."""
    return [f"hand:box:{session}", f"hand:flag:{session}", f"hand:reply:{session}", DONE]
