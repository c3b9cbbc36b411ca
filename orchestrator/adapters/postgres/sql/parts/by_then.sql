-- A condition: what a turn left was there after an epoch. Turns that are gone came before.
--
-- Arguments: epoch
-- Needs:     `kept` (turn_id)
NOT EXISTS (SELECT FROM turns
            WHERE turns.turn_id = kept.turn_id AND (turns.epoch IS NULL OR turns.epoch > %(epoch)s::bigint))
