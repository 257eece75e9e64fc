# Admission from a copy of the balance: eight sessions that know the pair, its policy
# and their plans from before ask one budget of 300 for 480 units, one by one, while
# another session publishes one generation after the other.  Exactly 300 are admitted
# in all, and by several generations (D2, F3, B5).
#
# Fails when: a session decides by what it has seen of a budget or of a policy, a
# publish opens the next budget with more than the last one left, or a reserve and a
# roll to a new generation do not exclude each other.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;
use Limitledger;
use Test::More;

my ($clients, $calls) = (8, 60);
my $node = ledger_node('one_balance');

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE call (subject text, client int, pid int, outcome text, dimension text, generation bigint);

-- waits until a subject has had so many generations
CREATE PROCEDURE await_generations(of_subject text, wanted int) LANGUAGE plpgsql AS $$
BEGIN
  WHILE (SELECT count(*) FROM limitledger.policies WHERE subject = of_subject) < wanted LOOP
    COMMIT;
    PERFORM pg_sleep(0.001);
  END LOOP;
END $$;
SQL

# All clients prepare, reserve a unit and give it back before the first call counts.
# Client 0 publishes: the cap moves up and down and never below what is there.  The others
# go no faster than that, however they are scheduled: a generation for each five calls.
sub ask
{
	my ($subject, $refill, $publishing) = @_;
	my $document = <<"JSON" =~ s/\n/ /gr;
{"schema": "admissionBudget.v1", "subject": "$subject", "route": "chat", "region": "*", "unit": "tokens",
"refill": $refill, "epoch": {"calendar": "month", "timeZone": "UTC"}, "estimatorDigests": [], "largestReservation": 300,
"holdTtl": "1 hour", "executionTtl": "1 hour", "hardExecutionLimit": 1000, "maximumOverdraft": 500, "priority": 0,
"weight": 1, "retention": "1 day"}
JSON

	my $publish = <<"SQL" =~ s/\n/ /gr;
SELECT generation FROM limitledger.publish_policy('$document'::jsonb
|| jsonb_build_object('fairnessBudget', :round::int) || CASE '$publishing' WHEN 'window' THEN '{}' ELSE jsonb_build_object('burst', 300 + 7 * (:round::int % 5)) END)
SQL
	$node->safe_psql('postgres', $publish =~ s/:round/0/gr);

	my $script = write_script("ask_$subject", <<"SQL");
\\set round :round + 1
\\if :round = 1
SELECT count(r), count(s) FROM limitledger.reserve_capacity('$subject', 'chat', 'warm ' || :client_id, 1, sha256('d')) r,
  LATERAL limitledger.release_reservation('$subject', CASE WHEN r.outcome = 'ACCEPTED' THEN 'warm ' || :client_id END) s;
SELECT pg_sleep(0.3);
\\endif
\\if :client_id = 0
$publish;
\\else
CALL await_generations('$subject', least(12, 1 + :round / 5));
INSERT INTO call SELECT '$subject', :client_id, pg_backend_pid(), r.outcome, r.dimension, r.generation
FROM limitledger.reserve_capacity('$subject', 'chat', 'r-' || :client_id || '-' || :round, 1, sha256('d')) r;
\\set pause random(0, 3000)
\\sleep :pause us
\\endif
SQL
	my ($code, $output) = bench($node, '-c', $clients + 1, '-j', 2, '-t', $calls, '-M', 'prepared', '-f', $script);

	is($code, 0, "$subject: every call was answered");
	value_is($node, <<"SQL", "ACCEPTED||300\nREFUSED|available|180", "$subject: 300 are admitted in all, 180 refused");
SELECT outcome, dimension, count(*) FROM call WHERE subject = '$subject' GROUP BY 1, 2 ORDER BY 1
SQL
	cmp_ok($node->safe_psql('postgres', "SELECT count(DISTINCT generation) FROM call WHERE subject = '$subject' AND outcome = 'ACCEPTED'"),
		'>=', 5, "$subject: under several generations");
	value_is($node, <<"SQL", "$clients|$clients", "$subject: by every session");
SELECT count(DISTINCT pid), count(DISTINCT client) FROM call WHERE subject = '$subject' AND outcome = 'ACCEPTED'
SQL
	value_is($node, <<"SQL", '300|300|0', "$subject: they are reserved, over all budgets, and nothing is left");
SELECT (SELECT count(*) FROM limitledger.reservations WHERE subject = '$subject' AND state = 'RESERVED'), outstanding, available
FROM limitledger.get_budget('$subject', 'chat')
SQL
	audit_ok($node, $subject);
}

ask('none', '{"kind": "none"}', 'burst');
ask('window', '{"kind": "window", "quota": 300}', 'window');

$node->stop;
done_testing();
