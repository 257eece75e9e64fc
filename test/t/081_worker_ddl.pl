# Workers and the life of a database and of the extension: nothing that somebody
# drops, renames or copies is held up by a worker, and what comes back is served
# without a restart (J4).
#
# Fails when: a worker stays in a database that has to be empty, errors once a cycle
# after DROP EXTENSION, or is not told of a CREATE EXTENSION or a new database.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# A long linger, so that workers are there when somebody wants the database.
my $node = PostgreSQL::Test::Cluster->new('worker_ddl');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'limitledger'
limitledger.worker_linger = '10min'
limitledger.audit_interval = '5min'
CONF
$node->start;

my $born = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

sub here
{
	my ($database) = @_;

	return "(SELECT count(*) FROM pg_stat_activity WHERE datname = '$database' AND backend_type LIKE 'limitledger %')";
}

sub soon
{
	my ($query, $name, $database) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok($node->poll_query_until($database // 'postgres', $query), $name)
	  or diag($node->safe_psql('postgres', "SELECT pid, datname, backend_type, state, query FROM pg_stat_activity WHERE backend_type LIKE 'limitledger %'"));
}

# hold makes a pair with a hold of one second, and waits until it has ended.
sub hold
{
	my ($database, $subject, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$node->safe_psql($database, <<"SQL");
SELECT limitledger.publish_policy('{"schema": "admissionBudget.v1", "subject": "$subject", "route": "chat",
 "region": "*", "unit": "tokens", "refill": {"kind": "none"}, "burst": 10, "epoch": {"length": "1 day"},
 "estimatorDigests": [], "largestReservation": 10, "holdTtl": "1 second", "executionTtl": "1 hour",
 "hardExecutionLimit": 10, "maximumOverdraft": 5, "priority": 0, "weight": 1, "fairnessBudget": 0, "retention": "1 day"}');
SELECT limitledger.reserve_capacity('$subject', 'chat', 'r', 10, sha256('d'));
SQL
	soon("SELECT state = 'EXPIRED' FROM limitledger.reservation WHERE subject = '$subject'", $name, $database);
}

sub log_from { return substr(PostgreSQL::Test::Utils::slurp_file($node->logfile), $_[0]) }

# ---- Preloaded, not created -------------------------------------------------------

soon("SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'limitledger launcher'", 'the launcher is there');
soon('SELECT ' . here('postgres') . ' = 0', 'a database without the extension is left alone');
is(join('', grep { /limitledger/ && !/LOG:  (?:statement|listening)/ } split /^/, log_from(0)), '', 'and nothing is said about it');

# ---- Two databases, created and dropped ---------------------------------------------

$node->safe_psql('postgres', "CREATE DATABASE $_") for qw(one two);
$node->safe_psql($_, 'CREATE EXTENSION limitledger') for qw(one two);
soon("SELECT last_run_at IS NOT NULL FROM limitledger.workers WHERE job = 'verify_conservation'", "a new ledger in $_ is audited, with no call", $_) for qw(one two);
hold('one', 'a', 'workers come with the extension');
hold('two', 'a', 'to a second database as well');
soon('SELECT ' . here($_) . ' = 2', "two workers stay in $_, by a long linger") for qw(one two);

# A worker that has come to a table has locked the extension before it, as DROP EXTENSION
# does: so each waits for the other only with nothing in hand.
my $ddl = $node->background_psql('one');
$ddl->query_safe('BEGIN');
$ddl->query_safe('LOCK TABLE limitledger.reservation');
$node->safe_psql('one', 'SELECT pg_reload_conf()');
soon(<<'SQL', 'a step holds the extension while it waits for a table', 'one');
SELECT count(*) >= 1 FROM pg_locks w JOIN pg_locks e USING (pid) JOIN pg_stat_activity a USING (pid)
WHERE a.backend_type LIKE 'limitledger %' AND NOT w.granted AND w.relation = 'limitledger.reservation'::regclass
  AND e.granted AND e.classid = 'pg_extension'::regclass AND e.mode = 'AccessShareLock'
SQL
$ddl->query_safe('COMMIT');
$ddl->quit;

my $mark = length log_from(0);
$node->safe_psql('one', 'DROP EXTENSION limitledger');
soon('SELECT ' . here('one') . ' = 0', 'they leave with the extension');
$node->safe_psql('two', 'DROP SCHEMA limitledger CASCADE');
soon('SELECT ' . here('two') . ' = 0', 'by whatever command it goes');
$node->safe_psql($_, 'CREATE EXTENSION limitledger') for qw(one two);
hold('one', 'b', 'and come again with it');
hold('two', 'b', 'in both');

# In one transaction, and rolled back.
$node->safe_psql('one', 'BEGIN; DROP EXTENSION limitledger; CREATE EXTENSION limitledger; COMMIT');
hold('one', 'c', 'after both in one transaction');
$node->safe_psql('one', 'BEGIN; DROP EXTENSION limitledger; ROLLBACK');
hold('one', 'd', 'after a drop that was rolled back');
$node->safe_psql('one', 'ALTER SCHEMA limitledger RENAME TO ledger');
$node->safe_psql('one', 'ALTER SCHEMA ledger RENAME TO limitledger');
hold('one', 'e', 'after the schema had another name');

# ---- Databases that have to be empty -------------------------------------------------

soon('SELECT ' . here('one') . ' = 2', 'two workers are in the database');
$node->safe_psql('postgres', 'ALTER DATABASE one RENAME TO uno');
pass('it is renamed');
hold('uno', 'f', 'workers come to it by its new name');
soon('SELECT ' . here('uno') . ' = 2', 'and stay');
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE uno');
pass('it is copied');
hold('copy', 'g', 'workers come to the copy');
hold('uno', 'g', 'and back to the original');
soon('SELECT ' . here('copy') . ' = 2', 'two workers are in the copy');
$node->safe_psql('postgres', 'DROP DATABASE copy');
pass('it is dropped');
soon('SELECT ' . here('uno') . ' = 2', 'two workers are in the original');
$node->safe_psql('postgres', 'DROP DATABASE uno WITH (FORCE)');
pass('it is dropped with FORCE');

# A command that fails lets the workers back.
my $guest = session($node, 'two');
soon('SELECT ' . here('two') . ' = 2', 'two workers are in a database');
my ($code, $out, $err) = $node->psql('postgres', 'ALTER DATABASE two RENAME TO due');
like($err, qr/being accessed by other users/, 'that somebody else is in');
like($err, qr/There is 1 other session using the database/, 'and of our workers nobody');
hold('two', 'h', 'they come back');
$guest->quit;

# Who may not drop it disturbs nobody.
$node->safe_psql('postgres', 'CREATE ROLE stranger LOGIN');
soon('SELECT ' . here('two') . ' = 2', 'two workers are in the database');
my $pids = $node->safe_psql('postgres', "SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity WHERE datname = 'two'");
($code, $out, $err) = $node->psql('postgres', 'DROP DATABASE two', extra_params => [ '-U', 'stranger' ]);
like($err, qr/must be owner/, 'a stranger may not drop it');
is($node->safe_psql('postgres', "SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity WHERE datname = 'two'"), $pids, 'and the workers stay');

is(join('', grep { /limitledger (?:expiry|repayment): step/ } split /^/, log_from($mark)), '', 'no step failed');
is(join('', grep { /FATAL:/ } split /^/, log_from($mark)), '', 'no worker was ended by force');
is($node->safe_psql('two', 'SELECT * FROM limitledger.verify_conservation()'), '', 'the books balance');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $born, 'the server never restarted');
$node->stop;
done_testing();
