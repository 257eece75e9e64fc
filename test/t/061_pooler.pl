# Session state behind a pooler: PgBouncer in transaction mode, with DISCARD ALL
# after each transaction, carries the whole life of 1,000 reservations, so that
# each step arrives on whatever server connection is free (F2).
#
# Fails when: a call needs an earlier SET, a temporary table or an advisory lock of
# its session, or leaves one behind.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($clients, $lives) = (20, 50);
my $total = $clients * $lives;
my $node = ledger_node('pooler');

publish($node, subject => '*', burst => 1_000_000);
$node->safe_psql('postgres', 'CREATE TABLE call (id text, step text, outcome text, state text, pid int)');

# The pooler listens beside the server's socket, for this test alone.
my ($folder, $port) = pooler_start($node, scalar getpwuid($<),
	default_pool_size => 7,
	server_reset_query => 'DISCARD ALL',
	server_reset_query_always => 1,
	server_round_robin => 1);

# The whole life, each step a transaction of its own.
my $id = "'r-' || :client_id || '-' || :round";
my $script = write_script('life', <<"SQL");
\\set round :round + 1
INSERT INTO call SELECT $id, 'reserve', r.outcome, r.state, pg_backend_pid()
  FROM limitledger.reserve_capacity('t' || :round % 10, 'chat', $id, 10, sha256('d')) r;
INSERT INTO call SELECT $id, 'start', r.outcome, r.state, pg_backend_pid()
  FROM limitledger.start_reservation('t' || :round % 10, $id, 'o' || $id) r;
INSERT INTO call SELECT $id, 'settle', r.outcome, r.state, pg_backend_pid()
  FROM limitledger.settle_usage('t' || :round % 10, $id, 'o' || $id, 4) r;
INSERT INTO call SELECT $id, 'get', r.outcome, r.state, pg_backend_pid()
  FROM limitledger.get_reservation('t' || :round % 10, $id) r;
SQL

my $output = '';
my $ok = IPC::Run::run(
	[ 'pgbench', '--no-vacuum', '-h', $folder, '-p', $port, '-D', 'round=0',
		'-c', $clients, '-j', 2, '-t', $lives, '-f', $script, 'postgres' ],
	'<', \undef, '>', \$output, '2>&1');
note $output;
ok($ok, 'all steps work through the pooler');
value_is($node, 'SELECT step, outcome, state, count(*) FROM call GROUP BY 1, 2, 3 ORDER BY 1', <<"END" =~ s/\n\z//r, 'each with its answer');
get|ACCEPTED|SETTLED|$total
reserve|ACCEPTED|RESERVED|$total
settle|ACCEPTED|SETTLED|$total
start|ACCEPTED|STARTED|$total
END
cmp_ok($node->safe_psql('postgres', <<'SQL'), '>', $total / 2, 'most lives crossed several server connections');
SELECT count(*) FROM (SELECT FROM call GROUP BY id HAVING count(DISTINCT pid) > 1) crossed
SQL
value_is($node, 'SELECT sum(spent), sum(reserved) FROM limitledger.head_budget', 4 * $total . '|0', 'all was counted once');
value_is($node, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", '0', 'no advisory lock stays behind');
audit_ok($node, 'after 1,000 lives');
pooler_stop($folder);

# And call by call, without a DISCARD that could hide it: the session is as it was.
my $state = <<'SQL';
SELECT md5(concat(
  (SELECT string_agg(s::text, ',' ORDER BY name) FROM pg_settings s),
  (SELECT string_agg(l.locktype || l.mode, ',') FROM pg_locks l WHERE pid = pg_backend_pid() AND locktype IN ('advisory', 'userlock')),
  (SELECT count(*) FROM pg_class WHERE relpersistence = 't'),
  (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors),
  (SELECT count(*) FROM pg_listening_channels())))
SQL
my $session = session($node);
$session->query_safe("DO 'BEGIN PERFORM limitledger.get_budget(''t'', ''chat''); END'");   # both libraries
$session->query_safe('SET synchronous_commit = off');   # which a call raises until its commit has ended
my $before = $session->query_safe($state);
foreach my $call (
	"reserve_capacity('t', 'chat', 'r1', 10, sha256('d'))",
	"reserve_capacity('t', 'chat', 'r1', 20, sha256('d'))",
	"reserve_capacity('t', 'chat', 'r2', 2000000, sha256('d'))",
	"start_reservation('t', 'r1', 'o1')",
	"report_usage_unknown('t', 'r1', 'o1')",
	"settle_usage('t', 'r1', 'o1', 4)",
	"reserve_capacity('t', 'chat', 'r3', 10, sha256('d'))",
	"release_reservation('t', 'r3')",
	"get_reservation('t', 'r3')",
	"resolve_reservation('t', 'r4', sha256('d'))",
	"reserve_capacity_batch(ARRAY['t'], ARRAY['chat'], ARRAY['b1'], ARRAY[1], ARRAY[sha256('d')])",
	"start_reservation_batch(ARRAY['t'], ARRAY['b1'], ARRAY['o2'])",
	"settle_usage_batch(ARRAY['t'], ARRAY['b1'], ARRAY['o2'], ARRAY[1])",
	"release_reservation_batch(ARRAY['t'], ARRAY['b1'])",
	"get_budget('t', 'chat')",
	"repay_debt('t', 'chat')",
	"unfreeze('t', 'chat', 'none')",
	"expire_reservations()",
	"claim_expiring(10)",
	"finish_expiring(10)",
	"expire_executions(10)",
	"repay_debtors(10, '', '')",
	"verify_conservation()",
	"request_digest('{}')",
	"transitions()",
	"outcomes()",
	"sqlstates()")
{
	$session->query_safe("SELECT count(*) FROM limitledger.$call");
	is($session->query_safe($state), $before, "nothing is left in the session by $call");
}
$session->query_safe('CALL limitledger.maintain()');
is($session->query_safe($state), $before, 'nothing is left in the session by maintain()');
audit_ok($node, 'at the end');

$session->quit;
$node->stop;
done_testing();
