# What goes wrong with workers: they are terminated, killed, switched off, out of
# slots, or one of their steps fails.  What is due is done all the same, once, with
# no restart by hand, and a step that fails stops no other (D14, F3, J4).
#
# Fails when: a worker that died is not replaced, an error of one job ends the worker
# or keeps its other jobs from running, the log is flooded, or a database waits for
# ever behind busy ones.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = ledger_node('worker_faults', "shared_preload_libraries = 'limitledger'", 'restart_after_crash = on',
	"limitledger.worker_linger = '10min'", "limitledger.audit_interval = '5min'", 'limitledger.worker_batch = 50');
my $HERE = "(SELECT count(*) FROM pg_stat_activity WHERE datname = 'postgres' AND backend_type LIKE 'limitledger %')";

sub soon
{
	my ($query, $name, $database) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok($node->poll_query_until($database // 'postgres', $query), $name) or diag($node->safe_psql('postgres', 'SELECT * FROM limitledger.workers'));
}

# holds makes `count` holds of a second, on pairs of their own.
sub holds
{
	my ($subject, $count) = @_;

	publish($node, subject => '*', route => $subject, holdTtl => '1 second', burst => 100);
	$node->safe_psql('postgres', <<"SQL");
SELECT count(*) FROM limitledger.reserve_capacity_batch(
  (SELECT array_agg('$subject' || n % 10) FROM generate_series(1, $count) n), array_fill('$subject'::text, ARRAY[$count]),
  (SELECT array_agg('$subject' || n) FROM generate_series(1, $count) n), array_fill(1::bigint, ARRAY[$count]), array_fill(sha256('d'), ARRAY[$count]))
SQL
}

sub all_expired
{
	my ($subject, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	soon("SELECT count(*) FILTER (WHERE state <> 'EXPIRED') = 0 FROM limitledger.reservation WHERE route = '$subject'", $name);
	value_is($node, "SELECT count(*) FILTER (WHERE available <> 100 OR reserved <> 0) FROM limitledger.budgets WHERE route = '$subject'",
		'0', "$name: all units are back, once");
}

sub lines
{
	my ($pattern) = @_;

	return scalar grep { /$pattern/ } split /^/, slurp_file($node->logfile);
}

sub set
{
	my ($setting) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $setting");
	$node->reload;
}

# ---- Terminated and killed -------------------------------------------------------

holds('a', 200);
all_expired('a', 'undisturbed');
soon("SELECT $HERE = 2", 'two workers are there');
holds('b', 200);
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type LIKE 'limitledger %'");
all_expired('b', 'all workers and their launcher were terminated');
soon("SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'limitledger launcher'", 'there is a launcher again');

holds('c', 200);
my $worker = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'limitledger expiry'");
like($worker, qr/^\d+$/, 'a worker is there');
kill 'KILL', $worker;
$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $worker)") or die 'the worker lives';
all_expired('c', 'a worker was killed, and the server recovered');
audit_ok($node, 'after that');

# ---- Cancelled --------------------------------------------------------------------

soon("SELECT $HERE = 2", 'two workers are there');
my $pids = $node->safe_psql('postgres', "SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity WHERE backend_type LIKE 'limitledger %'");
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type LIKE 'limitledger %'");
holds('d', 20);
all_expired('d', 'workers were cancelled between two steps');
value_is($node, "SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity WHERE backend_type LIKE 'limitledger %'", $pids, 'and are the same ones');

# ---- Switched off and on ----------------------------------------------------------

set('limitledger.workers = off');
soon("SELECT $HERE = 0", 'switched off, they leave');
value_is($node, 'SELECT DISTINCT status FROM limitledger.workers', 'off', 'and the view says so');
holds('e', 20);
soon("SELECT bool_and(time_left < interval '0') FROM limitledger.open_reservations WHERE route = 'e'", 'holds fall due');
value_is($node, "SELECT DISTINCT state FROM limitledger.reservation WHERE route = 'e'", 'RESERVED', 'and nobody ends them');
set('limitledger.workers = on');
all_expired('e', 'switched on again');

# ---- One step fails -----------------------------------------------------------------

publish($node, subject => 'x', executionTtl => '1 second', holdTtl => '1 second');
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state = 'USAGE_UNKNOWN' AND NEW.subject = 'x' THEN RAISE EXCEPTION 'not this one' USING ERRCODE = 'P0004'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER no BEFORE UPDATE ON limitledger.reservation FOR EACH ROW EXECUTE FUNCTION no();
SELECT limitledger.reserve_capacity('x', 'chat', 'run', 1, sha256('d'), start_operation => 'o');
SQL
soon("SELECT failures > 0 AND status = 'failing' AND last_error = 'P0004' FROM limitledger.workers WHERE job = 'expire_executions'",
	'a step fails');
holds('f', 20);
all_expired('f', 'while another job of the same worker fails');
$node->safe_psql('postgres', <<'SQL');
SELECT limitledger.publish_policy((document - 'policyGeneration') || '{"subject": "z"}') FROM limitledger.policies WHERE subject = 'x';
SELECT limitledger.reserve_capacity('z', 'chat', 'run', 1, sha256('d'), start_operation => 'o');
SQL
soon("SELECT state = 'USAGE_UNKNOWN' FROM limitledger.reservation WHERE subject = 'z'", 'the pair alone is passed by, not who comes behind it');
soon("SELECT failures > 1 FROM limitledger.workers WHERE job = 'expire_executions'", 'it is tried again');
is(lines(qr/limitledger expiry: step expire_executions failed: not this one/), 1, 'the log has it once');
value_is($node, "SELECT state FROM limitledger.reservation WHERE subject = 'x'", 'STARTED', 'nothing of it was done');
$node->safe_psql('postgres', 'DROP TRIGGER no ON limitledger.reservation');
soon("SELECT state = 'USAGE_UNKNOWN' FROM limitledger.reservation WHERE subject = 'x'", 'until it succeeds');
soon("SELECT failures = 0 FROM limitledger.workers WHERE job = 'expire_executions'", 'and then it fails no more');

# A table that a client keeps locked: what does not need it goes on.
my $client = session($node);
publish($node, subject => 'y', holdTtl => '2 seconds');
$client->query_safe($_) for "SELECT limitledger.reserve_capacity('y', 'chat', 'r', 1, sha256('d'))", 'BEGIN', 'LOCK TABLE limitledger.head_budget';
soon("SELECT last_error = '55P03' FROM limitledger.workers WHERE job = 'finish_expiring'", 'a step waits a second for a table, and fails');
value_is($node, "SELECT state FROM limitledger.reservation WHERE subject = 'y'", 'EXPIRING', 'the step before it was done');
$client->query_safe('ROLLBACK');
soon("SELECT state = 'EXPIRED' FROM limitledger.reservation WHERE subject = 'y'", 'and it succeeds once the table is free');
$client->quit;

# ---- An owner that is no superuser -----------------------------------------------------

# What a trigger does, at once or at the commit, it does as the owner, not as the
# superuser as whom the worker has connected.
$node->safe_psql('postgres', $_) for 'CREATE ROLE keeper SUPERUSER', 'CREATE DATABASE kept OWNER keeper';
$node->safe_psql('kept', <<'SQL');
SET ROLE keeper;
CREATE EXTENSION limitledger;
ALTER ROLE keeper NOSUPERUSER;
CREATE TABLE public.seen (who name);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.seen VALUES (current_user); RETURN NULL; END';
CREATE TRIGGER note AFTER UPDATE ON limitledger.reservation FOR EACH ROW EXECUTE FUNCTION note();
CREATE CONSTRAINT TRIGGER later AFTER UPDATE ON limitledger.reservation DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.state = 'EXPIRED') EXECUTE FUNCTION note();
SELECT limitledger.publish_policy('{"schema": "admissionBudget.v1", "subject": "t", "route": "chat",
 "region": "*", "unit": "tokens", "refill": {"kind": "none"}, "burst": 10, "epoch": {"length": "1 day"},
 "estimatorDigests": [], "largestReservation": 10, "holdTtl": "1 second", "executionTtl": "1 hour",
 "hardExecutionLimit": 10, "maximumOverdraft": 5, "priority": 0, "weight": 1, "fairnessBudget": 0, "retention": "1 day"}');
SELECT limitledger.reserve_capacity('t', 'chat', 'r', 10, sha256('d'));
SQL
soon("SELECT state = 'EXPIRED' FROM limitledger.reservation", 'a hold of an owner that is no superuser expires', 'kept');
is($node->safe_psql('kept', "SELECT string_agg(who, ' ') FROM public.seen"), 'keeper keeper keeper', 'its triggers ran as the owner, and so did what they had put off');

# ---- An audit that finds something ---------------------------------------------------

$node->safe_psql('postgres', <<'SQL');
ALTER TABLE limitledger.head_budget DISABLE TRIGGER ALL;
UPDATE limitledger.head_budget SET opening = opening + 1, carried = carried + 1, spent = spent + 1 WHERE (subject, route) = ('a1', 'a');
ALTER TABLE limitledger.head_budget ENABLE TRIGGER ALL;
SQL
set("limitledger.audit_interval = '1s'");
soon("SELECT last_rows > 0 FROM limitledger.workers WHERE job = 'verify_conservation'", 'the audit finds a discrepancy');
cmp_ok(lines(qr/WARNING: .*the audit of database "postgres" found \d+ discrepanc/), '>', 0, 'and warns');
is(lines(qr/DETAIL:  Rules: .*C2/) > 0, 1, 'it names the rules');
is(lines(qr/\ba1\b/), lines(qr/statement: .*\ba1\b/) + lines(qr/^UPDATE .*\ba1\b/), 'and nobody');
$node->safe_psql('postgres', <<'SQL');
ALTER TABLE limitledger.head_budget DISABLE TRIGGER ALL;
UPDATE limitledger.head_budget SET opening = opening - 1, carried = carried - 1, spent = spent - 1 WHERE (subject, route) = ('a1', 'a');
ALTER TABLE limitledger.head_budget ENABLE TRIGGER ALL;
SQL
soon("SELECT last_rows = 0 FROM limitledger.workers WHERE job = 'verify_conservation'", 'the next one finds none');
set("limitledger.audit_interval = '0'");

# ---- Too few slots ---------------------------------------------------------------------

# One worker at a time, and three databases that each want to keep theirs.
set('limitledger.worker_limit = 1');
for my $database (qw(p q))
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION limitledger');
	$node->safe_psql($database, <<'SQL');
SELECT limitledger.publish_policy('{"schema": "admissionBudget.v1", "subject": "t", "route": "chat",
 "region": "*", "unit": "tokens", "refill": {"kind": "none"}, "burst": 10, "epoch": {"length": "1 day"},
 "estimatorDigests": [], "largestReservation": 10, "holdTtl": "1 second", "executionTtl": "1 hour",
 "hardExecutionLimit": 10, "maximumOverdraft": 5, "priority": 0, "weight": 1, "fairnessBudget": 0, "retention": "1 day"}');
SELECT limitledger.reserve_capacity('t', 'chat', 'r', 10, sha256('d'));
SQL
}
holds('g', 20);
soon("SELECT state = 'EXPIRED' FROM limitledger.reservation", "database $_ gets its turn", $_) for qw(p q);
all_expired('g', 'and the first one too');
set('limitledger.worker_limit = 4');

# No slot at all: the server's own launcher has one, and ours the other.
$node->append_conf('postgresql.conf', 'max_worker_processes = 2');
$node->restart;
holds('h', 20);
soon("SELECT bool_and(time_left < interval '0') FROM limitledger.open_reservations WHERE route = 'h'", 'holds fall due on a server that has no slot left');
is(lines(qr/limitledger can't start a worker/), 1, 'the log says once that there is none for a worker');
value_is($node, "SELECT outcome FROM limitledger.reserve_capacity('h1', 'h', 'next', 100, sha256('d'))", 'ACCEPTED', 'the ledger is right without');
value_is($node, "SELECT claimed > 0 AND expired > 0 FROM (SELECT 1) a, LATERAL limitledger.expire_reservations()", 't', 'and a sweep by hand does the rest');

audit_ok($node, 'at the end');
$node->stop;
done_testing();
