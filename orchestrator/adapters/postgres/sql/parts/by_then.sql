-- A condition: the turn of a row was committed by an epoch. Turns that no longer exist count as committed.
--
-- Arguments: epoch
-- Needs:     `kept` (turn_id)
NOT EXISTS (SELECT FROM turns
            WHERE turns.turn_id = kept.turn_id AND (turns.epoch IS NULL OR turns.epoch > %(epoch)s::bigint))
