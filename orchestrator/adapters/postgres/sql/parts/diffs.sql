-- A column: a session's diffs since the full state in `states`, oldest first.
--
-- Needs:     `states`
ARRAY(SELECT later.diff
      FROM state_history AS later
      WHERE later.session_id = states.session_id
        AND later.epoch > states.base_epoch AND later.epoch <= states.epoch
      ORDER BY later.epoch)
