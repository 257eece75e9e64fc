#!/usr/bin/perl
# lies.pl: the auditor finds each one-line lie in a history that is true without it.
#
#   lies.pl AUDITOR
#
# The histories are below.  A lie is: its name, the check that must find it, and what it
# does to the text: [line as it is, line as it becomes].
use strict;
use warnings;
use File::Temp qw(tempdir);

my $auditor = shift // die "usage: lies.pl AUDITOR\n";
my $folder = tempdir(CLEANUP => 1);
my ($tests, $failed) = (0, 0);

my $hour = 3_600_000_000;
my $now = 4_102_704_000_000_000;
my ($digest, $other) = ('01' x 32, '02' x 32);

# A line of a receipt: outcome, dimension, state, replayed, then what is named.
my @receipt = qw(outcome dimension state replayed generation epoch reserved actual operation expires
  ledger_at available cap reset retry kind hard excess excess_generation excess_epoch);

sub line { join("\t", map { $_ // '\N' } @_) }

sub receipt {
	my ($call, $outcome, $dimension, $state, $replayed, %more) = @_;
	my %row = (outcome => $outcome, dimension => $dimension, state => $state, replayed => $replayed,
		generation => 1, epoch => $now, cap => 1000, ledger_at => $now, %more);
	return (line('<', $call, 'row', @row{@receipt}), line('<', $call, 'done'));
}

sub call { my ($n, $actor, $txn, @rest) = @_; line('>', $n, $actor, $txn, $now, 'ledger', @rest) }

my @head = (
	line('V', 1, 1, 1),
	line('P', 'r', 1, '*', $now - $hour, 'none', 1000, undef, undef, $hour, 1000, undef, 2000, 500,
		30_000_000, 600_000_000, undef, undef),
	line('I', 1, 'hash', 's', 'r', 'virtual', 'test', 'none'));
my @foot = ('.', line('G', 1));
my $hold = $now + 30_000_000;
my $run = $now + 600_000_000;

my %true;
$true{life} = [
	call(1, 1, 1, 'reserve_capacity', 's', 'r', 'a', 600, $digest, (undef) x 5),
	receipt(1, 'ACCEPTED', undef, 'RESERVED', 'f', reserved => 600, expires => $hold, available => 400),
	call(2, 2, 2, 'reserve_capacity', 's', 'r', 'b', 600, $digest, (undef) x 5),
	receipt(2, 'REFUSED', 'available', 'REQUESTED', 'f', available => 400, kind => 'release'),
	call(3, 1, 3, 'reserve_capacity', 's', 'r', 'a', 600, $digest, (undef) x 5),
	receipt(3, 'ACCEPTED', undef, 'RESERVED', 't', reserved => 600, expires => $hold, available => 400),
	call(4, 1, 4, 'start_reservation', 's', 'a', 'o'),
	receipt(4, 'ACCEPTED', undef, 'STARTED', 'f', reserved => 600, operation => 'o', expires => $run, available => 400),
	call(5, 2, 5, 'release_reservation', 's', 'a'),
	receipt(5, 'REFUSED', 'already_started', 'STARTED', 'f', reserved => 600, operation => 'o', expires => $run, available => 400),
	call(6, 1, 6, 'settle_usage', 's', 'a', 'o', 200, undef, 'executor'),
	receipt(6, 'ACCEPTED', undef, 'SETTLED', 'f', reserved => 600, actual => 200, excess => 0, operation => 'o', expires => $run, available => 800),
	call(7, 2, 7, 'settle_usage', 's', 'a', 'o', 200, undef, 'executor'),
	receipt(7, 'ACCEPTED', undef, 'SETTLED', 't', reserved => 600, actual => 200, excess => 0, operation => 'o', expires => $run, available => 800),
];
$true{debt} = [
	call(1, 1, 1, 'reserve_capacity', 's', 'r', 'a', 600, $digest, (undef) x 4, 'o'),
	receipt(1, 'ACCEPTED', undef, 'STARTED', 'f', reserved => 600, operation => 'o', expires => $run, available => 400),
	call(2, 1, 2, 'settle_usage', 's', 'a', 'o', 1100, undef, 'executor'),
	receipt(2, 'ACCEPTED', undef, 'SETTLED_WITH_DEBT', 'f', reserved => 600, actual => 1100, excess => 500, operation => 'o', expires => $run, available => 0),
	call(3, 2, 3, 'reserve_capacity', 's', 'r', 'b', 1, $digest, (undef) x 5),
	receipt(3, 'REFUSED', 'debt', 'REQUESTED', 'f', available => 0, kind => 'release'),
	call(4, 1, 4, 'grant_capacity', 's', 'r', 'g', 150, 'why'),
	line('<', 4, 'row', 'ACCEPTED', undef, 'f', 150, 0, 50, 'open', $now), line('<', 4, 'done'),
	call(5, 2, 5, 'reserve_capacity', 's', 'r', 'b', 1, $digest, (undef) x 5),
	receipt(5, 'ACCEPTED', undef, 'RESERVED', 'f', reserved => 1, expires => $hold, available => 49),
	call(6, 1, 6, 'record_usage', 's', 'r', 'u', 9),
	receipt(6, 'ACCEPTED', undef, undef, 'f', actual => 9, operation => 'u', available => 40),
	call(7, 1, 7, 'record_usage', 's', 'r', 'u', 9),
	receipt(7, 'ACCEPTED', undef, undef, 't', actual => 9, operation => 'u', available => 40),
];
$true{lost} = [
	call(1, 1, 1, 'reserve_capacity', 's', 'r', 'a', 600, $digest, (undef) x 5),
	line('<', 1, 'lost'),
	line('x', 2, 2, 'begin', 'read-committed'),
	call(2, 2, 2, 'reserve_capacity', 's', 'r', 'b', 300, $digest, (undef) x 5),
	receipt(2, 'ACCEPTED', undef, 'RESERVED', 'f', reserved => 300, expires => $hold, available => 100),
	line('x', 2, 2, 'rollback'), line('x', 2, 2, 'rolledback'),
	call(3, 1, 3, 'resolve_reservation', 's', 'a', $digest),
	receipt(3, 'ACCEPTED', undef, 'RESERVED', 't', reserved => 600, expires => $hold, available => 400),
	call(4, 1, 4, 'release_reservation', 's', 'a'),
	receipt(4, 'ACCEPTED', undef, 'RELEASED', 'f', reserved => 600, expires => $hold, available => 1000),
	call(5, 2, 5, 'get_reservation', 's', 'b'),
	receipt(5, 'UNKNOWN', 'reservation', 'RESERVATION_UNKNOWN', 'f', generation => undef, epoch => undef, cap => undef),
];
$true{unknown} = [
	call(1, 1, 1, 'reserve_capacity', 's', 'r', 'a', 600, $digest, (undef) x 4, 'o'),
	receipt(1, 'ACCEPTED', undef, 'STARTED', 'f', reserved => 600, operation => 'o', expires => $run, available => 400),
	call(2, 1, 2, 'report_usage_unknown', 's', 'a', 'o'),
	receipt(2, 'ACCEPTED', undef, 'USAGE_UNKNOWN', 'f', reserved => 600, operation => 'o', expires => $run, available => 400),
	call(3, 2, 3, 'reserve_capacity', 's', 'r', 'b', 600, $digest, (undef) x 5),
	receipt(3, 'REFUSED', 'available', 'REQUESTED', 'f', available => 400, kind => 'release'),
	call(4, 2, 4, 'get_reservation', 's', 'a'),
	receipt(4, 'ACCEPTED', undef, 'USAGE_UNKNOWN', 't', reserved => 600, operation => 'o', expires => $run, available => 400),
];
$true{held} = [
	call(1, 1, 1, 'reserve_capacity', 's', 'r', 'a', 600, $digest, (undef) x 4, 'o'),
	receipt(1, 'ACCEPTED', undef, 'STARTED', 'f', reserved => 600, operation => 'o', expires => $run, available => 400),
	line('x', 2, 2, 'begin', 'read-committed'),
	call(2, 2, 2, 'report_usage_unknown', 's', 'a', 'o'),
	receipt(2, 'ACCEPTED', undef, 'USAGE_UNKNOWN', 'f', reserved => 600, operation => 'o', expires => $run, available => 400),
	call(3, 2, 2, 'claim_unknown_usage', 100, '1 minute', 'actor 2'),
	line('<', 3, 'row', 's', 'a', 'r', 'o', 600, 0, 2000, $now, $now + 60_000_000),
	line('<', 3, 'done'),
	call(4, 1, 3, 'get_reservation', 's', 'a'),
	receipt(4, 'ACCEPTED', undef, 'STARTED', 't', reserved => 600, operation => 'o', expires => $run, available => 400),
	line('x', 2, 2, 'savepoint', 'p'),
	call(5, 2, 2, 'reserve_capacity', 's', 'r', 'b', 300, $digest, (undef) x 5),
	receipt(5, 'ACCEPTED', undef, 'RESERVED', 'f', reserved => 300, expires => $hold, available => 100),
	line('x', 2, 2, 'rollback to', 'p'),
	line('x', 2, 2, 'commit'),
	line('x', 2, 2, 'committed'),
	call(6, 1, 4, 'reserve_capacity', 's', 'r', 'c', 300, $digest, (undef) x 5),
	receipt(6, 'ACCEPTED', undef, 'RESERVED', 'f', reserved => 300, expires => $hold, available => 100),
	call(7, 1, 5, 'freeze', 's', 'q', 'why'),
	line('<', 7, 'row', 'REFUSED', 'no_policy', (undef) x 4),
	line('<', 7, 'done'),
];

# The story, its lie, the check that must find it: an edit of the answer to a call.
sub answer { my ($call, $from, $to) = @_; return sub { my ($l) = @_; return $l if $l !~ /^<\t$call\trow/; $l =~ s/$from/$to/ or die "no $from in $l"; $l } }
sub sent { my ($call, $from, $to) = @_; return sub { my ($l) = @_; return $l if $l !~ /^>\t$call\t/; $l =~ s/$from/$to/ or die "no $from in $l"; $l } }
sub told { my ($call, @row) = @_; my ($row) = receipt($call, @row); return sub { $_[0] =~ /^<\t$call\trow/ ? $row : $_[0] } }
sub without { my ($pattern) = @_; return sub { $_[0] =~ /$pattern/ ? () : $_[0] } }

my @lies = (
	['life', 'a second debit of one id', 'second_reservation', answer(3, "RESERVED\tt", "RESERVED\tf")],
	['life', 'an admission of what is not there', 'admitted_beyond', told(2, 'ACCEPTED', undef, 'RESERVED', 'f', reserved => 600, expires => $hold, available => 0)],
	['life', 'a refusal of what is there', 'order', told(1, 'REFUSED', 'available', 'REQUESTED', 'f', available => 1000, kind => 'release')],
	['life', 'too much available', 'order', answer(1, "\t400\t1000", "\t401\t1000")],
	['life', 'another deadline', 'order', answer(1, $hold, $hold + 1)],
	['life', 'a wait that another one is meant by', 'order', answer(2, "\trelease", "\trefill")],
	['life', 'another operation', 'order', answer(4, "\to\t", "\tp\t")],
	['life', 'a start that is told again as new', 'second_start', sent(5, "release_reservation\ts\ta", "start_reservation\ts\ta\to"), told(5, 'ACCEPTED', undef, 'STARTED', 'f', reserved => 600, operation => 'o', expires => $run)],
	['life', 'a start that is released', 'second_refund', told(5, 'ACCEPTED', undef, 'RELEASED', 'f', reserved => 600, expires => $run)],
	['life', 'a start that expires', 'started_expired', told(5, 'REFUSED', 'expired', 'EXPIRED', 'f', reserved => 600, expires => $run)],
	['life', 'settled twice', 'second_settlement', answer(7, "SETTLED\tt", "SETTLED\tf")],
	['life', 'settled with other figures', 'receipt', answer(7, "\t200\t", "\t201\t")],
	['life', 'more back than was reserved', 'order', answer(6, "\t800\t", "\t1000\t")],
	['life', 'nothing back', 'order', answer(6, "\t800\t", "\t400\t")],
	['life', 'settled, then running', 'state_order', answer(7, "SETTLED\tt", "STARTED\tt")],
	['life', 'a replay for another request', 'order', sent(3, $digest, $other)],
	['life', 'a conflict for the same request', 'order', told(3, 'CONFLICT', 'request', 'RESERVED', 'f')],
	['life', 'held after its units were settled', 'order', answer(7, "\t600\t", "\t599\t")],
	['life', 'an internal error', 'error', sub { $_[0] =~ /^<\t5\trow/ ? () : $_[0] =~ /^<\t5\tdone/ ? line('<', 5, 'error', 'XX000', 'oops') : $_[0] }],
	['life', 'a broken invariant', 'error', sub { $_[0] =~ /^<\t5\trow/ ? () : $_[0] =~ /^<\t5\tdone/ ? line('<', 5, 'error', 'LL901', 'oops') : $_[0] }],
	['life', 'a call without an end', 'history', without(qr/^<\t5\tdone/)],
	['life', 'a group without an end', 'history', without(qr/^G/)],
	['life', 'started before it was reserved', 'order', without(qr/^[<>]\t1\t/), ],
	['debt', 'an admission in debt', 'admitted_in_debt', told(3, 'ACCEPTED', undef, 'RESERVED', 'f', reserved => 1, expires => $hold, available => 0)],
	['debt', 'a debt that is not recorded', 'order', answer(2, 'SETTLED_WITH_DEBT', 'SETTLED')],
	['debt', 'an excess that is too small', 'order', answer(2, "\t500\t", "\t400\t")],
	['debt', 'a grant beside the debt', 'order', answer(4, "\t150\t0\t50", "\t150\t0\t150")],
	['debt', 'a grant that leaves debt', 'order', answer(4, "\t150\t0\t50", "\t150\t100\t50")],
	['debt', 'usage booked twice', 'second_usage', answer(7, "\\\\N\tt", "\\N\tf")],
	['debt', 'usage that costs nothing', 'order', answer(6, "\t40\t", "\t49\t")],
	['lost', 'a lost call that applied twice', 'order', answer(4, "\t1000\t1000", "\t400\t1000")],
	['lost', 'a lost call that took half', 'order', answer(3, "\t600\t", "\t300\t")],
	['lost', 'what was rolled back is there', 'order', told(5, 'ACCEPTED', undef, 'RESERVED', 't', reserved => 300, expires => $hold)],
	['lost', 'a fence where units are held', 'order', told(3, 'ACCEPTED', undef, 'RELEASED', 'f', generation => undef, epoch => undef, reserved => 0, expires => $now)],
	['lost', 'a transaction that had what nobody had', 'admitted_beyond', sent(2, "\t300\t", "\t1300\t")],
	['unknown', 'unknown usage that is admitted again', 'admitted_beyond', told(3, 'ACCEPTED', undef, 'RESERVED', 'f', reserved => 600, expires => $hold, available => 400)],
	['unknown', 'unknown usage that is free', 'order', answer(2, "\t600\t", "\t0\t")],
	['held', 'a claim of what runs', 'order', without(qr/^[<>]\t2\t/)],
	['held', 'a savepoint that takes beyond', 'order', sent(5, "\t300\t", "\t900\t")],
	['held', 'a savepoint that keeps its units', 'order', told(6, 'REFUSED', 'available', 'REQUESTED', 'f', available => 100, kind => 'release')],
	['held', 'a freeze where no policy is', 'order', answer(7, "REFUSED\tno_policy", "UNKNOWN\tpair")],
	['unknown', 'unknown usage that expires', 'unknown_freed', answer(4, 'USAGE_UNKNOWN', 'EXPIRED')],
);

sub audit {
	my (@lines) = @_;
	open my $file, '>', "$folder/history" or die;
	print $file "$_\n" for @lines;
	close $file;
	return scalar `$auditor --offline $folder/history`;
}

sub ok {
	my ($holds, $name, $said) = @_;
	$tests++;
	$failed++ if !$holds;
	print(($holds ? 'ok' : 'not ok') . " $tests - $name\n");
	print map { "# $_\n" } split /\n/, $said if !$holds;
}

for my $story (sort keys %true) {
	my $said = audit(@head, @{$true{$story}}, @foot);
	ok(scalar($said =~ / discrepancies=0 .* ordered=1/ && $said !~ /^found/m), "nothing is found in $story", $said);
}
for (@lies) {
	my ($story, $name, $check, @edits) = @$_;
	my @lines = (@head, @{$true{$story}}, @foot);
	@lines = map { $_->[0] } grep { defined $_->[0] } map { my @out = ($_); for my $e (@edits) { @out = map { $e->($_) } @out } map { [$_] } @out } @lines;
	my $said = audit(@lines);
	ok(scalar($said =~ /^found $check /m), "$story: $name", $said);
}
print "1..$tests\n";
exit($failed > 0);
