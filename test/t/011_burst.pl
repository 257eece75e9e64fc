# Lost counts under a parallel burst: 1,020 calls for one unit each meet a budget
# of 1,000.  However many connections send them, 1,000 are admitted and 20 are
# refused, and every admitted one has left a receipt (D2, F1).
#
# Fails when: a budget is written from a row that was read before its lock.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my $node = ledger_node('burst');

publish($node, subject => '*');
$node->safe_psql('postgres', 'CREATE TABLE call (subject text, outcome text, dimension text)');

sub burst
{
	my ($subject, @clients) = @_;
	my $script = write_script('burst', <<"SQL");
INSERT INTO call
SELECT '$subject', r.outcome, r.dimension
FROM limitledger.reserve_capacity('$subject', 'chat', gen_random_uuid()::text, 1, sha256('d')) r;
SQL
	my ($code, $output) = bench($node, @clients, '-f', $script);

	is($code, 0, "$subject: all calls were answered");
	value_is($node, <<"SQL", "ACCEPTED||1000\nREFUSED|available|20", "$subject: 1,000 admitted, 20 refused");
SELECT outcome, dimension, count(*) FROM call WHERE subject = '$subject' GROUP BY 1, 2 ORDER BY 1
SQL
	value_is($node, <<"SQL", '1000|1000|0|1000', "$subject: as many receipts as units reserved");
SELECT (SELECT count(*) FROM limitledger.reservation r WHERE r.subject = h.subject AND state = 'RESERVED'),
       reserved, available, opening
FROM limitledger.head_budget h WHERE subject = '$subject'
SQL
	audit_ok($node, $subject);
}

burst('51 connections',           '-c', 51, '-j', 2, '-t', 20);
burst('51 prepared connections',  '-c', 51, '-j', 2, '-t', 20, '-M', 'prepared');
burst('one connection',           '-c', 1,  '-t', 1020);

$node->stop;
done_testing();
