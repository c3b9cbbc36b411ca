-- What leaves with a session where no foreign key says so (RT-28).
--
-- Each turn adds rows to these tables, and with each row the server would look up again to whom it belongs: a fifth of
-- all that it does for a turn. Whatever adds them has locked the lane, which cannot go meanwhile.

CREATE FUNCTION parley_clear_lane() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM journal USING turns WHERE turns.session_id = OLD.session_id AND journal.turn_id = turns.turn_id;
    DELETE FROM turns WHERE session_id = OLD.session_id;
    DELETE FROM state_history WHERE session_id = OLD.session_id;
    DELETE FROM utterances WHERE session_id = OLD.session_id;
    DELETE FROM events WHERE session_id = OLD.session_id;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION parley_clear_lane() FROM PUBLIC;
CREATE TRIGGER lanes_clear AFTER DELETE ON lanes FOR EACH ROW EXECUTE FUNCTION parley_clear_lane();
