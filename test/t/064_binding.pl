# Logins that are bound to subjects, as real connections (I1): what SET SESSION
# AUTHORIZATION, RENAME, DROP ROLE, DROP EXTENSION, a crash, a standby and a restore
# make of a binding.
#
# Fails when: one of them opens what a binding shut, or a session goes on by bindings
# of another login, another ledger or another time.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('binding');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "max_connections = 40\nsynchronous_commit = off\nwal_writer_delay = 10s\n");
$node->start;

my @LOGINS = qw(app_one app_two);
my $ask = q(SELECT string_agg(s || ' ' || g.state, ', ' ORDER BY s)
  FROM unnest(ARRAY['t1', 't2']) s, limitledger.get_reservation(s, 'r1') g);
my %SEES = (
	one => 't1 RESERVED, t2 RESERVATION_UNKNOWN', two => 't1 RESERVATION_UNKNOWN, t2 RESERVED',
	all => 't1 RESERVED, t2 RESERVED', nothing => 't1 RESERVATION_UNKNOWN, t2 RESERVATION_UNKNOWN');

# furnish makes a ledger with a hold of two subjects, and lets the logins in.
sub furnish
{
	my ($database) = @_;

	$node->safe_psql($database, 'CREATE EXTENSION limitledger');
	$node->safe_psql($database, "SELECT limitledger.grant_bundle('$_', 'gateway')") for @LOGINS;
	publish($node, subject => '*', holdTtl => '1 day');
	$node->safe_psql($database, "SELECT limitledger.reserve_capacity('$_', 'chat', 'r1', 1, sha256('r'))") for qw(t1 t2);
}

sub bind_subject
{
	my ($role, $subject) = @_;

	return $node->safe_psql('postgres', "SELECT * FROM limitledger.bind_subject('$role', '$subject')");
}

# login opens a session that stays.
sub login
{
	my ($user, $on) = @_;

	return ($on // $node)->background_psql('postgres', on_error_stop => 0, extra_params => [ '-U', $user ]);
}

# once asks in a session of its own.
sub once
{
	my ($user, $database, $on) = @_;

	return ($on // $node)->safe_psql($database // 'postgres', $ask, extra_params => [ '-U', $user ]);
}

# error_of runs a statement that must fail, and returns what was said.
sub error_of
{
	my ($session, $statement) = @_;

	$session->query($statement);
	my $said = $session->{stderr};
	$session->{stderr} = '';
	return $said;
}

$node->safe_psql('postgres', "CREATE ROLE $_ LOGIN") for @LOGINS;
furnish('postgres');

# Sessions of a bound login, and of one that was there before it was bound.
my $one = login('app_one');
is($one->query_safe($ask), $SEES{all}, 'a login that is not bound');
is(bind_subject('app_one', 't1'), 'f|1', 'it is bound');
is($one->query_safe($ask), $SEES{one}, 'its session knows at once');
is(once('app_one'), $SEES{one}, 'a new one too');
is(once('app_two'), $SEES{all}, 'another login is as it was');

# The session user counts, and only a superuser changes that.
like(error_of($one, 'SET SESSION AUTHORIZATION app_two'), qr/permission denied to set session authorization/, 'no way to another login');
like(error_of($one, 'SELECT limitledger.free_role(\'app_one\')'), qr/permission denied/, 'nor out of the binding');
my $boss = login('postgres');
is($boss->query_safe($ask), $SEES{all}, 'a superuser');
$boss->query_safe('SET SESSION AUTHORIZATION app_one');
is($boss->query_safe($ask), $SEES{one}, 'that poses as the login');
$boss->query_safe('SET SESSION AUTHORIZATION app_two');
is($boss->query_safe($ask), $SEES{all}, 'as another');
$boss->query_safe('SET SESSION AUTHORIZATION app_one; BEGIN; SET LOCAL SESSION AUTHORIZATION app_two');
is($boss->query_safe($ask), $SEES{all}, 'within a transaction');
$boss->query_safe('ROLLBACK');
is($boss->query_safe($ask), $SEES{one}, 'and back');
$boss->query_safe('RESET SESSION AUTHORIZATION');
is($boss->query_safe($ask), $SEES{all}, 'and as itself');

# A pooler between transactions.
$one->query_safe('DISCARD ALL');
is($one->query_safe($ask), $SEES{one}, 'after DISCARD ALL');

# A name is not what is bound.
$node->safe_psql('postgres', 'ALTER ROLE app_one RENAME TO app_renamed');
is($one->query_safe($ask), $SEES{one}, 'renamed, in its session');
is(once('app_renamed'), $SEES{one}, 'and in a new one');
$node->safe_psql('postgres', 'CREATE ROLE app_one LOGIN; GRANT app_renamed TO app_one');
is(once('app_one'), $SEES{all}, 'who takes the old name, or is a member, is not bound by it');
$node->safe_psql('postgres', 'DROP ROLE app_one; ALTER ROLE app_renamed RENAME TO app_one');

# A crash, although nobody waited for the disk.
$_->quit for $one, $boss;
bind_subject('app_two', 't2');
$node->stop('immediate');
$node->start;
is(once('app_two'), $SEES{two}, 'a binding that was acknowledged is there after a crash');

# A standby judges by what has arrived there, in a session that goes on.
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
my $there = login('app_two', $standby);
$node->wait_for_catchup($standby);
is($there->query_safe($ask), $SEES{two}, 'on a standby');
bind_subject('app_two', 't1');
$node->wait_for_catchup($standby);
is($there->query_safe($ask), $SEES{all}, 'a binding that arrives there');
$node->safe_psql('postgres', "SELECT limitledger.unbind_subject('app_two', 't1')");
$node->wait_for_catchup($standby);
is($there->query_safe($ask), $SEES{two}, 'and one that ends');
$there->quit;
$standby->stop;

# A dump has bindings by the names of their roles.  One of each state, and one of a
# role that is gone: its number may be another role's where the dump is restored.
$node->safe_psql('postgres', $_) for 'CREATE ROLE app_empty LOGIN', 'CREATE ROLE app_freed LOGIN', 'CREATE ROLE app_gone LOGIN',
  "SELECT limitledger.grant_bundle(r, 'gateway') FROM unnest(ARRAY['app_empty', 'app_freed']) r",
  "SELECT limitledger.bind_subject(r, 't1') FROM unnest(ARRAY['app_empty', 'app_freed', 'app_gone']) r",
  "DROP ROLE app_gone", "SELECT limitledger.unbind_subject('app_empty', 't1'), limitledger.free_role('app_freed')";
$node->safe_psql('postgres', 'CREATE DATABASE restored');
my $dump = "$PostgreSQL::Test::Utils::tmp_check/binding.dump";
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, 'postgres' ], 'a dump');
$node->command_ok([ 'pg_restore', '-e', '-d', 'restored', $dump ], 'restored');
is($node->safe_psql('restored', 'SELECT role_name, subject, state FROM limitledger.subject_bindings'),
	"app_empty|t1|unbound\napp_freed|t1|freed\napp_one|t1|bound\napp_two|t1|unbound\napp_two|t2|bound", 'the bindings are there');
is(once('app_one', 'restored'), $SEES{one}, 'and hold');
is(once('app_empty', 'restored'), $SEES{nothing}, 'also of a login that was left none');
is(once('app_freed', 'restored'), $SEES{all}, 'and one that was freed is free');

# A ledger that is made anew in a session's lifetime has bindings of its own.
$one = login('app_one');
is($one->query_safe($ask), $SEES{one}, 'before DROP EXTENSION');
$node->safe_psql('postgres', 'DROP EXTENSION limitledger');
furnish('postgres');
is($one->query_safe($ask), $SEES{all}, 'a new ledger binds nobody');
bind_subject('app_one', 't2');
is($one->query_safe($ask), $SEES{two}, 'before it does');

# In one session, and in one transaction.
my $renew = 'DROP EXTENSION limitledger; CREATE EXTENSION limitledger;';
my $own = login('postgres');
$own->query_safe("GRANT USAGE ON SCHEMA public TO app_one; SET SESSION AUTHORIZATION app_one; $ask; RESET SESSION AUTHORIZATION");
$own->query_safe("BEGIN; $renew SELECT limitledger.grant_bundle('app_one', 'gateway');");
is($own->query_safe("SET SESSION AUTHORIZATION app_one; SELECT outcome, dimension FROM limitledger.reserve_capacity('t1', 'chat', 'r', 1, sha256('r')); RESET SESSION AUTHORIZATION"),
	'REFUSED|no_policy', 'created again in a transaction');
$own->query_safe('ROLLBACK');
is($own->query_safe("SET SESSION AUTHORIZATION app_one; $ask; RESET SESSION AUTHORIZATION"), $SEES{two}, 'rolled back, the binding stands');

# The role is dropped while its session goes on, and the next binding forgets its rows.
# Nothing is granted to it any more; what PUBLIC may run does not open the ledger either.
$node->safe_psql('postgres', "CREATE FUNCTION public.ask() RETURNS text LANGUAGE sql SECURITY DEFINER AS \$\$ $ask \$\$");
is($one->query_safe('SELECT public.ask()'), $SEES{two}, 'by a function that is for everybody');
$node->safe_psql('postgres', 'DROP OWNED BY app_one');
$node->safe_psql('restored', 'DROP OWNED BY app_one');
$node->safe_psql('postgres', 'DROP ROLE app_one');
is($node->safe_psql('postgres', 'SELECT count(*), count(role_name) FROM limitledger.subject_bindings'), '1|0', 'the role is gone, its row is not');
is(bind_subject('app_two', 't2'), 'f|1', 'until the next binding');
is($node->safe_psql('postgres', 'SELECT role_name FROM limitledger.subject_bindings'), 'app_two', 'which forgets it');
like(error_of($one, $ask), qr/permission denied/, 'the session of a dropped role may call nothing');
is($one->query_safe('SELECT public.ask()'), $SEES{nothing}, 'and by the function it reaches nothing, rather than all');

audit_ok($node, 'at the end');
$_->quit for $one, $own;
$node->stop;
done_testing();
