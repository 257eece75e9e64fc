# pg_upgrade carries the ledger into a new data folder: rows, guards, grants, and what
# pg_dump is to take (J5).  It runs from this major version to itself, which it allows,
# and which passes through the same dump in binary-upgrade mode as any other.
#
# Fails when: something of the extension is not an object that its dump describes, or
# the library wants more from a server in binary-upgrade mode than that gives.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run ();
use Life;
use Limitledger;
use PostgreSQL::Test::Utils;
use Test::More;

my $preload = "shared_preload_libraries = 'limitledger'";
my $old = ledger_node('old');
my $new = PostgreSQL::Test::Cluster->new('new');

$new->init;
$old->safe_psql('postgres', 'CREATE DATABASE app');
$old->safe_psql('app', 'CREATE EXTENSION limitledger');
fill_ledger($old, 'app');
$old->safe_psql('app', q(CREATE ROLE gw; SELECT limitledger.grant_bundle('gw', 'gateway')));
my $contents = contents($old, 'app');
my @catalogue = catalogue($old, 'app');
$old->stop;
$_->append_conf('postgresql.conf', $preload) for $old, $new;

# It leaves a script where it stands.
chdir $PostgreSQL::Test::Utils::tmp_check or die $!;
chomp(my $bin = `pg_config --bindir`);
my $said = '';
IPC::Run::run([ 'pg_upgrade', '--link', '--old-datadir', $old->data_dir, '--new-datadir', $new->data_dir,
		'--old-bindir', $bin, '--new-bindir', $bin, '--socketdir', $new->host,
		'--old-port', $old->port, '--new-port', $new->port ],
	'<', \undef, '>', \$said, '2>&1');
is($?, 0, 'pg_upgrade --link, with the library preloaded') or diag($said);

# No worker may change what is compared.
$new->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$new->start;
is(contents($new, 'app'), $contents, 'each table has the same rows');
same_catalogue([ plain(catalogue($new, 'app')) ], [ plain(@catalogue) ], 'the catalogue is the same');
is($new->safe_psql('app', 'SELECT * FROM limitledger.verify_conservation()'), '', 'the books balance');
is($new->safe_psql('app', "SET ROLE gw; SELECT outcome FROM limitledger.release_reservation('open', 'r3')"), 'ACCEPTED',
	'a role has its bundle');
my (undef, undef, $error) = $new->psql('app', 'UPDATE limitledger.head_budget SET spent = 0');
like($error, qr/what was spent, issued, repaid or retired does not fall/, 'the guards stand');
finish_ledger($new, 'app');

$new->stop;
done_testing();

# plain takes the parentheses out of CHECKs: one that is read from its printed form
# prints a chain of ANDs with fewer of them.
sub plain
{
	return map { /^constraint: / ? tr/()//dr : $_ } @_;
}
