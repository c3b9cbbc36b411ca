-- A condition on `turns`: the predecessor in `sequence` has ended, or the turn has none (RT-5).
-- With EXISTS, the planner would scan the turns of all sessions. This subquery needs one index lookup.
(turns.client_sequence IS NULL
 OR turns.client_sequence = 1
 OR (SELECT predecessor.finished_at
     FROM turns AS predecessor
     WHERE predecessor.session_id = turns.session_id
       AND predecessor.client_sequence = turns.client_sequence - 1) IS NOT NULL)
