-- A rate is kept when it is committed, so that it is in force a moment after that, however long its transaction took: a
-- price that a buyer saw meanwhile stays.
DROP TRIGGER rates_kept ON rates;
DROP TRIGGER network_fees_kept ON network_fees;
CREATE CONSTRAINT TRIGGER rates_kept AFTER INSERT OR UPDATE OF usd, quoted_at ON rates
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION keep_rate();
CREATE CONSTRAINT TRIGGER network_fees_kept AFTER INSERT OR UPDATE OF units, quoted_at ON network_fees
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION keep_network_fee();
