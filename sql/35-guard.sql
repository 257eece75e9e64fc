-- Guards: they refuse what no call does, whoever tries (C3).

CREATE FUNCTION guard_head() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_head';
CREATE FUNCTION guard_closed() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_closed';
CREATE FUNCTION guard_reservation() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_reservation';
CREATE FUNCTION guard_bound() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_bound';

CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON head_budget
  FOR EACH ROW EXECUTE FUNCTION guard_head();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON closed_budget
  FOR EACH ROW EXECUTE FUNCTION guard_closed();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON reservation
  FOR EACH ROW EXECUTE FUNCTION guard_reservation();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON operation
  FOR EACH ROW EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON extension
  FOR EACH ROW EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON capacity_grant
  FOR EACH ROW EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON operator_action
  FOR EACH ROW EXECUTE FUNCTION guard_bound();

CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON head_budget
  FOR EACH STATEMENT EXECUTE FUNCTION guard_head();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON closed_budget
  FOR EACH STATEMENT EXECUTE FUNCTION guard_closed();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON reservation
  FOR EACH STATEMENT EXECUTE FUNCTION guard_reservation();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON operation
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON operator_action
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON extension
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON capacity_grant
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();

-- Of shards, on the side of the ledger (G).
CREATE FUNCTION guard_shard() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_shard';
CREATE FUNCTION guard_gateway() RETURNS trigger LANGUAGE C
AS 'MODULE_PATHNAME', 'limitledger_guard_gateway';

CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON emergency_shard
  FOR EACH ROW EXECUTE FUNCTION guard_shard();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON gateway
  FOR EACH ROW EXECUTE FUNCTION guard_gateway();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON shard_report
  FOR EACH ROW EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON shard_receipt
  FOR EACH ROW EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON emergency_shard
  FOR EACH STATEMENT EXECUTE FUNCTION guard_shard();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON gateway
  FOR EACH STATEMENT EXECUTE FUNCTION guard_gateway();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON shard_report
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON shard_receipt
  FOR EACH STATEMENT EXECUTE FUNCTION guard_bound();
