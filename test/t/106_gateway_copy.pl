# A gateway's database that is copied while it spends: the copy accepts, cuts and signs
# nothing, so that the ledger takes back no unit that the original may spend (G7).
#
# Fails when: a copy of a gateway reports, or accepts, and the ledger mints what it says.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Shards;
use Test::More;

my $centre = shard_node('centre');
my $gateway = shard_node('gw');
join_gateway($centre, $gateway, 'gw');
publish($centre, subject => 'c', emergencyMode => 'enabled', emergencyShare => 80, shardTtl => '1 hour', holdTtl => '1 minute', largestReservation => 500);
$centre->safe_psql('postgres', q(SELECT limitledger.issue_emergency_shard('c', 'chat', 's', 'gw', 500)));
my $envelope = sign_shard($centre, 'c', 's');
is(accept_shard($gateway, $envelope), 'ACCEPTED', 'the shard is on its gateway');

$gateway->safe_psql('template1', 'CREATE DATABASE twin TEMPLATE postgres');
is($gateway->safe_psql('twin', q(SELECT outcome, dimension FROM limitledger.cut_shard_report('c', 's'))), 'REFUSED|recovery', 'a copy of the gateway cuts no report');
is($gateway->safe_psql('twin', q(SELECT outcome, dimension FROM limitledger.report_shard('c', 's'))), 'REFUSED|recovery', 'and signs none');
is($gateway->safe_psql('twin', "SELECT outcome, dimension FROM limitledger.accept_emergency_shard('$envelope')"), 'REFUSED|recovery', 'nor does it accept');
is($gateway->safe_psql('postgres', q(SELECT outcome, available FROM limitledger.shard_reserve('c', 'chat', 'r', 500, sha256('d'), start_operation => 'o'))), 'ACCEPTED|0', 'the original goes on');
is($centre->safe_psql('postgres', q(SELECT available FROM limitledger.reserve_capacity('c', 'chat', 'r', 1, sha256('d')) r)), 499, 'and the ledger has what it did not give out, and no more');
is((cut_report($gateway, 'c', 's'))[0], 'ACCEPTED', 'the original reports');
like(signed_report($gateway, 'c', 's'), qr/^\w+\.\w+\.[\w-]+$/a, 'and signs');
done_testing();
