-- A condition on `turns`: the predecessor in `sequence` has ended, or the turn has none (RT-5).
(turns.client_sequence IS NULL
 OR turns.client_sequence = 1
 OR EXISTS (SELECT FROM turns AS predecessor
            WHERE predecessor.session_id = turns.session_id
              AND predecessor.client_sequence = turns.client_sequence - 1
              AND predecessor.finished_at IS NOT NULL))
