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
