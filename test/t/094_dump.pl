# Dump and restore: a copy holds what the original held, and everything open in it
# can be finished (J5).
#
# Fails when: a table or sequence of the extension is not marked for pg_dump, a guard
# or a CHECK refuses what COPY brings, one table's rows need another's to be there
# first, or a number that the copy gives next has been given before.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run ();
use Life;
use Limitledger;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = ledger_node('dump', 'wal_level = replica', 'max_wal_senders = 4');
my $folder = PostgreSQL::Test::Utils::tempdir();

# run_ok runs a client program on the node; its last argument names the test.
sub run_ok
{
	my ($on, @command) = @_;
	my $name = pop @command;
	my $said = '';

	local %ENV = (%ENV, PGHOST => $on->host, PGPORT => $on->port);
	IPC::Run::run(\@command, '<', \undef, '>', \$said, '2>&1');
	is($?, 0, $name) or diag($said);
	return $said;
}

sub new_database
{
	my ($name, $sql) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE template0");
	$node->safe_psql($name, $sql) if defined $sql;
	return $name;
}

# same_ledger asserts that a restored database is the one that was dumped.
my ($CONTENTS, @CATALOGUE);

sub same_ledger
{
	my ($on, $database, $how) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(contents($on, $database), $CONTENTS, "$how: each table has the same rows");
	same_catalogue([ catalogue($on, $database) ], \@CATALOGUE, "$how: the catalogue is the same");
	is($on->safe_psql($database, 'SELECT * FROM limitledger.verify_conservation()'), '', "$how: the books balance");
}

my $app = new_database('app', 'CREATE EXTENSION limitledger');

# Whatever the extension creates that holds data is marked for pg_dump, all of it.
my $MARKED = <<'SQL';
SELECT count(*) > 7, string_agg(c.relname, ' ') FILTER (WHERE c.oid <> ALL (e.extconfig)),
       string_agg(c.relname, ' ') FILTER (WHERE e.extcondition[array_position(e.extconfig, c.oid)] <> '')
FROM pg_class c, pg_extension e
WHERE c.relnamespace = 'limitledger'::regnamespace AND c.relkind IN ('r', 'p', 'S', 'm') AND e.extname = 'limitledger'
SQL
is($node->safe_psql('app', $MARKED), 't||', 'every table and sequence is marked, with all of its rows');
is($node->safe_psql('app', "CREATE TABLE limitledger.other (n int); $MARKED; DROP TABLE limitledger.other"),
	't|other|', 'a table that is not would be seen');

fill_ledger($node, 'app');
$node->safe_psql('app', q(CREATE ROLE gw; SELECT limitledger.grant_bundle('gw', 'gateway')));
$CONTENTS = contents($node, 'app');
@CATALOGUE = catalogue($node, 'app');
cmp_ok(scalar @CATALOGUE, '>', 500, 'there is a catalogue to compare');

# The usual ways.
run_ok($node, 'pg_dump', '-Fc', '-f', "$folder/custom", 'app', 'a dump in the custom format');
new_database('custom');
run_ok($node, 'pg_restore', '--exit-on-error', '-d', 'custom', "$folder/custom", 'is restored');
same_ledger($node, 'custom', 'custom');
is($node->safe_psql('custom', "SET ROLE gw; SELECT outcome FROM limitledger.reserve_capacity('somebody', 'chat', 'gw', 1, sha256('d'));
  SELECT outcome FROM limitledger.release_reservation('somebody', 'gw')"), "ACCEPTED\nACCEPTED", 'a role has its bundle in the copy');
finish_ledger($node, 'custom');

run_ok($node, 'pg_dump', '-Fp', '-f', "$folder/plain", 'app', 'a plain dump');
new_database('plain');
run_ok($node, 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-1', '-f', "$folder/plain", 'plain', 'is restored in one transaction');
same_ledger($node, 'plain', 'plain');

# Rows alone, into a ledger whose guards and CHECKs stand.
run_ok($node, 'pg_dump', '-Fc', '--data-only', '-f', "$folder/data", 'app', 'a dump of the rows');
new_database('data', q(CREATE EXTENSION limitledger; SELECT limitledger.grant_bundle('gw', 'gateway')));
run_ok($node, 'pg_restore', '--exit-on-error', '-d', 'data', "$folder/data", 'is restored into an empty ledger');
same_ledger($node, 'data', 'data only');

run_ok($node, 'pg_dump', '-Fc', '--schema-only', '-f', "$folder/schema", 'app', 'a dump without rows');
new_database('halves');
run_ok($node, 'pg_restore', '--exit-on-error', '-d', 'halves', "$folder/schema", 'is restored');
is($node->safe_psql('halves', 'SELECT count(*) FROM limitledger.policy'), '0', 'it brings no rows');
run_ok($node, 'pg_restore', '--exit-on-error', '-j', 2, '-d', 'halves', "$folder/data", 'then the rows');
same_ledger($node, 'halves', 'schema, then data');

# The ledger alone, by its extension, read by somebody who may read everything.
$node->safe_psql('app', 'CREATE ROLE backup LOGIN IN ROLE pg_read_all_data');
run_ok($node, 'pg_dump', '-U', 'backup', '-e', 'limitledger', '-f', "$folder/alone", 'app', 'a dump of the extension');
new_database('alone');
run_ok($node, 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$folder/alone", 'alone', 'is restored');
same_ledger($node, 'alone', 'extension only');

# What the documents warn of: a dump by schema lacks the extension, what was added to
# its tables is not dumped, and with triggers put off one of ours comes back weaker.
my $said = run_ok($node, 'pg_dump', '-n', 'limitledger', 'app', 'a dump by schema');
like($said, qr/^COPY limitledger\.policy /m, 'has rows');
unlike($said, qr/CREATE EXTENSION/, 'and nothing to put them into');
$node->safe_psql('plain', <<'SQL');
CREATE INDEX own ON limitledger.reservation (priority);
CREATE TRIGGER own BEFORE UPDATE ON limitledger.reservation FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
ALTER TABLE limitledger.reservation SET (autovacuum_vacuum_scale_factor = 0.02);
SQL
unlike(run_ok($node, 'pg_dump', 'plain', 'a dump of a ledger that somebody has added to'), qr/\bown\b|autovacuum/, 'lacks what was added');
my $always = q(SELECT string_agg(tgenabled::text, '') FROM pg_trigger WHERE tgrelid = 'limitledger.policy'::regclass AND tgname LIKE 'policy_changed%');
is($node->safe_psql('data', $always), 'AA', 'policy_changed always fires');
new_database('weaker', 'CREATE EXTENSION limitledger');
run_ok($node, 'pg_restore', '--exit-on-error', '--disable-triggers', '-d', 'weaker', "$folder/data", 'a restore that disables triggers');
is($node->safe_psql('weaker', $always), 'OO', 'it fires no more for a replication worker');

# Whoever owns the database needs a superuser for it.
$node->safe_psql('postgres', $_) for 'CREATE ROLE landlord LOGIN', 'CREATE DATABASE let OWNER landlord';
my ($code, undef, $error) = $node->psql('let', 'CREATE EXTENSION limitledger', extra_params => [ '-U', 'landlord' ]);
like($error, qr/permission denied to create extension/, 'the owner of a database may not create it');

# A bound role has to be there, by its name: a restore without it stops.
$node->safe_psql('postgres', 'ALTER ROLE bound RENAME TO renamed');
new_database('unbound');
$node->command_fails_like([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('unbound'), "$folder/custom" ],
	qr/role "bound" does not exist/, 'a restore without a bound role stops');
$node->safe_psql('postgres', 'ALTER ROLE renamed RENAME TO bound');

# Over a ledger that is there.
run_ok($node, 'pg_restore', '--exit-on-error', '--clean', '--if-exists', '-d', 'data', "$folder/custom", 'a restore over another ledger');
same_ledger($node, 'data', 'clean');

# A session that knew the old one goes on with what was restored.
my $session = session($node, 'halves');
is($session->query_safe("SELECT generation FROM limitledger.get_budget('open', 'chat')"), '1', 'a session has the ledger in use');
run_ok($node, 'pg_restore', '--exit-on-error', '--clean', '--if-exists', '-d', 'halves', "$folder/custom", 'it is restored under it');
is($session->query_safe("SELECT outcome, replayed FROM limitledger.reserve_capacity('open', 'chat', 'r1', 100, sha256('d'))"),
	'ACCEPTED|t', 'the session works on the restored one');
$session->quit;
finish_ledger($node, 'halves');

# The whole cluster, roles included.
my $other = PostgreSQL::Test::Cluster->new('dumpall');
$other->init;
$other->start;
run_ok($node, 'pg_dumpall', '-f', "$folder/all", 'a dump of the cluster');
run_ok($other, 'psql', '-Xq', '-f', "$folder/all", 'postgres', 'is restored');
same_ledger($other, 'app', 'cluster');
finish_ledger($other, 'app');
$other->stop;

# A dump sees one instant, whatever goes on meanwhile.
new_database('busy', 'CREATE EXTENSION limitledger');
fill_ledger($node, 'busy');
my $script = write_script('load', <<'SQL');
\set id random(1, 1000000000)
SELECT outcome FROM limitledger.reserve_capacity('s' || :client_id, 'chat', 'l' || :id, 3, sha256('d'), start_operation => 'l' || :id);
SELECT outcome FROM limitledger.settle_usage('s' || :client_id, 'l' || :id, 'l' || :id, 0);
SQL
$said = '';
my $load = IPC::Run::start([ 'pgbench', '-n', '-h', $node->host, '-p', $node->port, '-c', 4, '-T', 60, '-f', $script, 'busy' ],
	'<', \undef, '>', \$said, '2>&1');
for my $round (1, 2)
{
	$node->poll_query_until('busy', "SELECT count(*) > $round * 100 FROM limitledger.reservation") or die "no load: $said";
	run_ok($node, 'pg_dump', '-Fd', '-j', 2, '-f', "$folder/busy$round", 'busy', "a dump under load, round $round");
	run_ok($node, 'pg_restore', '--exit-on-error', '--clean', '--if-exists', '-d', 'alone', "$folder/busy$round", 'is restored');
	cmp_ok($node->safe_psql('alone', 'SELECT count(*) FROM limitledger.reservation'), '>', $round * 100, 'with what was committed');
	is($node->safe_psql('alone', 'SELECT * FROM limitledger.verify_conservation()'), '', 'and its books balance');
}
$load->kill_kill;
is($node->safe_psql('alone', <<'SQL'), 't', 'what ran at that instant can be settled');
SELECT coalesce(bool_and(s.outcome = 'ACCEPTED'), true)
FROM limitledger.open_reservations o, limitledger.settle_usage(o.subject, o.reservation_id, o.operation_id, 0) s
WHERE o.reservation_id LIKE 'l%'
SQL

documented();
point_in_time();
is(contents($node, 'app'), $CONTENTS, 'nothing of all this changed the original');

$node->stop;
done_testing();

# documented runs the shell blocks of the chapter on backups as they stand there.
sub documented
{
	my ($chapter) = slurp_file("$FindBin::RealBin/../../docs/operations.md") =~ /^## Backup and restore\n(.*?)^## /ms;
	my @blocks = $chapter =~ /^```sh\n(.*?)^```/msg;

	cmp_ok(scalar @blocks, '>', 1, 'backups are documented');
	local %ENV = (%ENV, PGUSER => getpwuid($>) . '');
	run_ok($node, 'sh', '-ec', "cd '$folder'\n$_", "as documented:\n$_") for @blocks;
	same_ledger($node, 'app_restored', 'as documented');
	finish_ledger($node, 'app_restored');
	return;
}

# point_in_time goes back to an instant by a physical backup and the archive.
sub point_in_time
{
	$node->enable_archiving;
	$node->restart;
	$node->backup('base');
	$node->safe_psql('busy', "SELECT FROM limitledger.reserve_capacity('somebody', 'chat', 'before', 2, sha256('d'), start_operation => 'before')");
	my $then = contents($node, 'busy');
	$node->safe_psql('postgres', "SELECT pg_create_restore_point('then')");
	$node->safe_psql('busy', "SELECT FROM limitledger.reserve_capacity('somebody', 'chat', 'after', 2, sha256('d'), start_operation => 'after')");
	$node->safe_psql('postgres', 'SELECT pg_switch_wal()');

	my $back = PostgreSQL::Test::Cluster->new('back');
	$back->init_from_backup($node, 'base', has_restoring => 1, standby => 0);
	$back->append_conf('postgresql.conf', "recovery_target_name = 'then'\nrecovery_target_action = 'promote'");
	$back->start;
	$back->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'it does not come up';
	is(contents($back, 'busy'), $then, 'back at an instant, each table has the rows of then');
	is($back->safe_psql('busy', 'SELECT * FROM limitledger.verify_conservation()'), '', 'and the books balance');
	is($back->safe_psql('busy', "SELECT outcome, dimension FROM limitledger.settle_usage('somebody', 'after', 'after', 2)"),
		'UNKNOWN|reservation', 'what came later is unknown');
	is($back->safe_psql('busy', "SELECT outcome FROM limitledger.record_usage('somebody', 'chat', 'after', 2)"), 'ACCEPTED',
		'and is recorded by its operation');
	is($back->safe_psql('busy', "SELECT outcome, state FROM limitledger.settle_usage('somebody', 'before', 'before', 2)"), 'ACCEPTED|SETTLED',
		'what came before is settled');
	$back->stop;
	return;
}
