# The library's life in a server: not preloaded, preloaded, loaded by hand; and
# databases that are renamed or copied with a ledger in them (J4).
#
# Fails when: a setting can only be made at server start, a call needs shared memory
# that nobody asked for, an error ends the session or the server, or the library
# writes to the log where it has nothing to do.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Life;
use Limitledger;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = ledger_node('library');
my $born = started($node);

sub started
{
	return $_[0]->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
}

# problems returns what a server has logged above LOG, but for sessions that its own
# restart has met.
sub problems
{
	my ($on, $from) = @_;

	return join '', grep { /(?:WARNING|ERROR|FATAL|PANIC):/ && !/due to administrator command/ } split /^/, slurp_file($on->logfile, $from);
}

# ---- not preloaded -----------------------------------------------------------

# Every routine, each in a session that has not loaded the library, with NULL for
# what it must be given.
my @calls = split /\n/, $node->safe_psql('postgres', <<'SQL');
SELECT proname || ' ' || (proname LIKE '%\_bundle' OR oid::regprocedure::text IN (SELECT signature FROM limitledger.bundles()))::text
  || ' ' || CASE prokind WHEN 'p' THEN 'CALL ' ELSE 'SELECT * FROM ' END || oid::regproc || '('
  || coalesce((SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n)
               FROM unnest(proargtypes) WITH ORDINALITY u (t, n) WHERE n <= pronargs - pronargdefaults), '') || ')'
FROM pg_proc WHERE pronamespace = 'limitledger'::regnamespace ORDER BY 1
SQL
cmp_ok(scalar @calls, '>', 60, 'there are routines to call');
for (@calls)
{
	my ($name, $public, $call) = split / /, $_, 3;
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY sqlstate\n$call;\n\\echo :SQLSTATE\nSELECT 'here';", on_error_stop => 0);
	my ($state) = $out =~ /^(\w{5})\nhere\z/m;

	# the ledger's own answer; from its inner steps, any that is not a breakdown
	my $answer = $public eq 'true' ? qr/^(?:00000|LL\d{3})$/ : qr/^(?!XX|57|58|08)\w{5}$/;
	like($state // "none: $err", $answer, "not preloaded: $name");
}
is(problems($node) =~ /.*(?:FATAL|PANIC).*/ ? $& : '', '', 'no call ended a session');

# By hand, before the first call, after it, and where there is no ledger.
my $WHOLE = <<'SQL';
SELECT outcome FROM limitledger.reserve_capacity('t1', 'chat', 'ID', 10, sha256('d'), start_operation => 'ID');
SELECT outcome FROM limitledger.settle_usage('t1', 'ID', 'ID', 10);
SQL
publish($node);
is($node->safe_psql('postgres', "LOAD 'limitledger';\n" . $WHOLE =~ s/ID/1/gr), "ACCEPTED\nACCEPTED", 'loaded by hand, then called');
is($node->safe_psql('postgres', $WHOLE =~ s/ID/2/gr . "LOAD 'limitledger';\n" . $WHOLE =~ s/ID/3/gr),
	"ACCEPTED\nACCEPTED\nACCEPTED\nACCEPTED", 'called, then loaded by hand');
is($node->safe_psql('template1', "LOAD 'limitledger'; LOAD 'limitledger'; SHOW limitledger.durability_required"), 'on',
	'loaded by hand in a database without it');
is($node->safe_psql('postgres', "LOAD 'limitledger'; SELECT count(*) > 1, count(*) FILTER (WHERE context = 'postmaster')
  FROM pg_settings WHERE name LIKE 'limitledger.%'"), 't|0', 'no setting wants a restart')
  if $node->safe_psql('postgres', "SELECT current_setting('shared_preload_libraries')") eq '';

# What was set before the library came is judged when it comes.
$node->safe_psql('postgres', 'CREATE ROLE plain');
my ($code, $out, $err) = $node->psql('postgres', <<'SQL');
SET ROLE plain;
SET limitledger.durability_required = off;
SET limitledger.clock_override = '2030-01-01 00:00:00+00';
SET limitledger.no_such_setting = 1;
RESET ROLE;
LOAD 'limitledger';
SHOW limitledger.durability_required;
SHOW limitledger.clock_override;
SQL
is($out, "on\n", 'a plain role sets nothing before the library is there');
like($err, qr/WARNING:.*no_such_setting/, 'a setting that does not exist is told of');
is($node->safe_psql('postgres', "SET limitledger.durability_required = off; LOAD 'limitledger'; SHOW limitledger.durability_required"),
	'off', 'a superuser does');
is(started($node), $born, 'the server never restarted');

# ---- databases ---------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE first');
$node->safe_psql('first', 'CREATE EXTENSION limitledger');
fill_ledger($node, 'first');
my $contents = contents($node, 'first');
my @catalogue = catalogue($node, 'first');

$node->safe_psql('postgres', 'ALTER DATABASE first RENAME TO second');
is(contents($node, 'second'), $contents, 'a database that was renamed has its ledger');
$node->safe_psql('postgres', 'CREATE DATABASE third TEMPLATE second');
is(contents($node, 'third'), $contents, 'a database made after it has the same');
same_catalogue([ catalogue($node, 'third') ], \@catalogue, 'and the same catalogue');
finish_ledger($node, 'third');
is(contents($node, 'second'), $contents, 'what is done in the copy is done there alone');
finish_ledger($node, 'second');
$node->safe_psql('postgres', 'DROP DATABASE second');
is($node->safe_psql('third', 'SELECT count(*) FROM limitledger.verify_conservation()'), '0', 'the copy outlives the original');
$node->stop;

# ---- preloaded ---------------------------------------------------------------

$node = PostgreSQL::Test::Cluster->new('preloaded');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'limitledger'");
$node->start;
$born = started($node);
$node->safe_psql('postgres', 'CREATE DATABASE without');
$node->safe_psql('without', 'CREATE TABLE t (n int); INSERT INTO t VALUES (1); DROP TABLE t; VACUUM');
is($node->safe_psql('without', 'SHOW limitledger.durability_required'), 'on', 'preloaded: its settings are there');
is($node->safe_psql('without', q(SELECT count(*) FROM pg_class WHERE relname = 'head_budget')), '0', 'preloaded: its tables are not');
$node->safe_psql('postgres', 'DROP DATABASE without');
$node->restart;
is(problems($node), '', 'preloaded but not created: nothing to complain of');

$born = started($node);
for my $round (1, 2)
{
	$node->safe_psql('postgres', 'CREATE EXTENSION limitledger');
	publish($node);
	is($node->safe_psql('postgres', $WHOLE =~ s/ID/1/gr), "ACCEPTED\nACCEPTED", "preloaded, created the $round. time: it works");
	audit_ok($node, "created the $round. time");
	$node->safe_psql('postgres', 'DROP EXTENSION limitledger');
}
is(problems($node), '', 'preloaded, created and dropped: nothing to complain of');
is(started($node), $born, 'the server never restarted');

$node->stop;
done_testing();
