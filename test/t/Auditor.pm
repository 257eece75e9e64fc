# Auditor.pm
#	  Keeps, beside the ledger, what its clients were told, and holds the tables
#	  against it.  It knows the protocol from docs/protocol.md alone and shares no
#	  code with the extension; of its calls, only verify_conservation() is asked.
#
#	  told() reads a line of a client's log: the answer must agree with all that was
#	  told and seen before.  audit() reads the tables: what was acknowledged is there,
#	  with its figures, and what was asked and not answered took effect wholly or
#	  not at all.  What it finds becomes known: the next answer about it must say so.
#
# A discrepancy is a text in the list that both return.

package Auditor;

use strict;
use warnings FATAL => 'all';

my %OPEN = map { $_ => 1 } qw(RESERVED EXPIRING STARTED USAGE_UNKNOWN);
my %ENDED = map { $_ => 1 } qw(SETTLED SETTLED_WITH_DEBT RELEASED EXPIRED);
my @FIELDS = qw(outcome dimension state replayed units actual operation expires at);

# A call moves a reservation from one state to another; time does where it says due.
my @MOVES = (
	[ 'ABSENT', 'RESERVED', 'reserve' ],
	[ 'ABSENT', 'STARTED', 'reserve_and_start' ],
	[ 'ABSENT', 'RELEASED', 'resolve' ],
	[ 'RESERVED', 'STARTED', 'start' ],
	[ 'RESERVED', 'RELEASED', 'release' ],
	[ 'RESERVED', 'EXPIRING', 'due' ],
	[ 'EXPIRING', 'EXPIRED', 'due' ],
	[ 'STARTED', 'USAGE_UNKNOWN', 'report_unknown' ],
	[ 'STARTED', 'USAGE_UNKNOWN', 'due' ],
	[ 'STARTED', 'SETTLED', 'settle' ],
	[ 'STARTED', 'SETTLED_WITH_DEBT', 'settle' ],
	[ 'USAGE_UNKNOWN', 'SETTLED', 'settle' ],
	[ 'USAGE_UNKNOWN', 'SETTLED_WITH_DEBT', 'settle' ]);

sub new
{
	my ($class) = @_;

	return bless {
		item => {},       # "subject id" => reservation
		live => {},       # those that may still change, or changed since the last audit
		usage => {},      # "subject operation" => { pair, units, asked }
		grant => {},
		pair => {},       # "subject route" => what its budgets must add up to
		count => {},      # "route state" => rows
		extended => 0,    # extensions, and their units
		extended_units => 0,
		swept => { claim => 0, finish => 0, finish_units => 0 },
		told => 0,        # answers
		replays => 0,     # calls that had taken effect though their answer was lost
		redone => 0,      # calls that had not
		since => 0,
		errors => [] }, $class;
}

sub wrong
{
	my ($self, $where, $what) = @_;

	push @{ $self->{errors} }, "$where: $what";
	return;
}

# --- the books of the auditor -------------------------------------------------

# book adds (or with -1 takes away) what a reservation counts for.
sub book
{
	my ($self, $item, $sign) = @_;
	my $pair = $self->{pair}{ $item->{pair} } //= { reserved => 0, spent => 0, granted => 0 };

	return if $item->{state} eq 'ABSENT';
	$self->{count}{"$item->{state} $item->{fence}"} += $sign;
	$pair->{reserved} += $sign * $item->{units} if $OPEN{ $item->{state} };
	$pair->{spent} += $sign * $item->{actual} if defined $item->{actual};
	return;
}

sub change
{
	my ($self, $item, %new) = @_;

	$self->{live}{ $item->{key} } = $item if !$ENDED{ $item->{state} };
	$self->book($item, -1);
	$item->{$_} = $new{$_} for keys %new;
	$self->book($item, +1);
	return;
}

sub extend
{
	my ($self, $item, $id, $units) = @_;

	$item->{extension}{$id} = $units;
	$self->{extended}++;
	$self->{extended_units} += $units;
	$self->change($item, units => $item->{units} + $units);
	return;
}

# --- what clients were told -----------------------------------------------------

# told takes in one line of the log.
sub told
{
	my ($self, $line) = @_;
	my ($session, $call, $subject, $route, $id, $units, $operation, $trial, @answer) = split /\t/, $line, -1;
	my %ask = (call => $call, subject => $subject, route => $route, id => $id, units => $units,
		operation => $operation, trial => $trial);

	$ask{where} = "$call $subject $route $id $operation ($units)";
	if ($answer[0] eq 'error')
	{
		$self->wrong($ask{where}, "error $answer[1]");
		return;
	}
	my $answer;
	if ($answer[0] ne 'lost')
	{
		@{$answer}{@FIELDS} = @answer;
		$self->{told}++;
	}
	if ($call =~ /^(?:claim|finish|executions|repay)$/)
	{
		$self->told_sweep($call, $answer) if $answer;
	}
	elsif ($call eq 'record' || $call eq 'grant') { $self->told_amount(\%ask, $answer) }
	else { $self->told_item(\%ask, $answer) }
	return;
}

sub told_sweep
{
	my ($self, $call, $answer) = @_;

	return if $call !~ /^(?:claim|finish)$/;
	$self->{swept}{$call} += $answer->{units};
	$self->{swept}{finish_units} += $answer->{actual} if $call eq 'finish';
	return;
}

# told_amount: usage and grants, once for each operation.
sub told_amount
{
	my ($self, $ask, $answer) = @_;
	my $kind = $ask->{call} eq 'grant' ? 'grant' : 'usage';
	my $entry = $self->{$kind}{"$ask->{subject} $ask->{operation}"} //=
	  { pair => "$ask->{subject} $ask->{route}", asked => $ask->{units}, units => undef };

	return if !$answer;
	if ($answer->{outcome} ne 'ACCEPTED')
	{
		$self->wrong($ask->{where}, "$answer->{outcome} $answer->{dimension}");
		return;
	}
	$self->was_done($ask, $answer, defined $entry->{units});
	my $units = $kind eq 'grant' ? $answer->{units} : $ask->{units};
	if (!defined $entry->{units}) { $self->booked($kind, $entry, $units) }
	elsif ($entry->{units} != $units) { $self->wrong($ask->{where}, "$units, and before $entry->{units}") }
	return;
}

sub booked
{
	my ($self, $kind, $entry, $units) = @_;
	my $pair = $self->{pair}{ $entry->{pair} } //= { reserved => 0, spent => 0, granted => 0 };

	$entry->{units} = $units;
	$pair->{ $kind eq 'grant' ? 'granted' : 'spent' } += $units;
	return;
}

# was_done: a call that took effect before is replayed, and no other is.
sub was_done
{
	my ($self, $ask, $answer, $done) = @_;

	$self->wrong($ask->{where}, $done ? 'done again' : 'replayed, and was never done')
	  if ($answer->{replayed} eq 't') != ($done ? 1 : 0);
	return if $ask->{trial} != 1;
	$self->{ $done ? 'replays' : 'redone' }++;
	return;
}

# done tells whether a call stands by what is known of its reservation.
sub done
{
	my ($item, $ask) = @_;
	my $call = $ask->{call};

	return $item->{state} ne 'ABSENT' if $call =~ /^res/;
	return ($item->{operation} // '') eq $ask->{operation} if $call eq 'start';
	return exists $item->{extension}{ $ask->{operation} } if $call eq 'extend';
	return defined $item->{actual} if $call eq 'settle';
	return $item->{state} eq 'RELEASED' if $call eq 'release';
	return $item->{state} eq 'USAGE_UNKNOWN';
}

sub told_item
{
	my ($self, $ask, $answer) = @_;
	my $key = "$ask->{subject} $ask->{id}";
	my $item = $self->{item}{$key} //= { key => $key, pair => "$ask->{subject} $ask->{route}",
		state => 'ABSENT', units => 0, asked => $ask->{units}, fence => 0, extension => {} };

	if (!$answer)
	{
		$item->{asking} = $ask if $ask->{trial} != 2;
		$self->{live}{$key} = $item;
		return;
	}
	delete $item->{asking} if $ask->{trial} != 2;
	my $done = done($item, $ask);
	if ($answer->{outcome} eq 'REFUSED')
	{
		$self->refused($ask, $answer, $item, $done);
		return;
	}
	if ($answer->{outcome} ne 'ACCEPTED')
	{
		$self->wrong($ask->{where}, "$answer->{outcome} $answer->{dimension}");
		return;
	}

	# A sweep may have said so before, and a late report changes nothing then.
	$self->was_done($ask, $answer, $done) if $ask->{call} ne 'report_unknown';
	$self->accepted($ask, $item) if !$done;
	$self->judge_state($ask, $answer, $item);
	$self->change($item, state => $answer->{state});
	$self->wrong($ask->{where}, "$answer->{units} units instead of $item->{units}")
	  if $answer->{units} != $item->{units};
	$self->wrong($ask->{where}, "$answer->{actual} used instead of " . ($item->{actual} // 'nothing'))
	  if ($answer->{actual} ne '' ? $answer->{actual} : -1) != ($item->{actual} // -1);
	$self->wrong($ask->{where}, "operation $answer->{operation} instead of " . ($item->{operation} // 'none'))
	  if $answer->{operation} ne ($item->{operation} // '');
	return;
}

# accepted books what a call does by taking effect.
sub accepted
{
	my ($self, $ask, $item) = @_;
	my $call = $ask->{call};

	if ($call eq 'reserve') { $self->change($item, units => $item->{asked}, state => 'RESERVED') }
	elsif ($call eq 'reserve_and_start') { $self->change($item, units => $item->{asked}, state => 'STARTED') }
	elsif ($call eq 'resolve') { $self->change($item, fence => 1, state => 'RELEASED') }
	elsif ($call eq 'extend') { $self->extend($item, $ask->{operation}, $ask->{units}) }
	elsif ($call eq 'settle') { $self->change($item, actual => $ask->{units}) }
	$item->{operation} = $ask->{operation} if $call =~ /start/;
	return;
}

sub judge_state
{
	my ($self, $ask, $answer, $item) = @_;
	my $due = $answer->{expires} ne '' && $answer->{expires} <= $answer->{at};
	my %can = reachable($item->{state}, $ask->{call}, $due);

	$self->wrong($ask->{where}, "$answer->{state} after $item->{state}") if !$can{ $answer->{state} };
	return;
}

# refused: a call that stands is never refused; for want of time, only when it is due.
sub refused
{
	my ($self, $ask, $answer, $item, $done) = @_;
	my ($call, $why) = ($ask->{call}, $answer->{dimension});

	$self->wrong($ask->{where}, "refused ($why), and was done") if $done && $call ne 'report_unknown';
	$self->wrong($ask->{where}, 'expired before its time')
	  if $why eq 'expired' && $answer->{expires} > $answer->{at};
	my $right =
	    $call =~ /^reserve/ ? qr/^(?:available|debt)$/
	  : $call eq 'extend' ? qr/^(?:available|debt|expired|closed_budget|already_started)$/
	  : $call eq 'report_unknown' ? qr/^settled$/
	  : $call =~ /^(?:start|release)$/ ? qr/^expired$/
	  : qr/^(?!)/;
	$self->wrong($ask->{where}, "refused: $why") if $why !~ $right;
	$self->{redone}++ if $ask->{trial} == 1;
	return;
}

# reachable returns the states to which a call, or time, can have led.
sub reachable
{
	my ($state, $call, $due) = @_;
	my %can = ($state => 1);

	for my $move (@MOVES)
	{
		my ($from, $to, $by) = @$move;
		$can{$to} = 1 if $can{$from} && ($by eq $call || ($by eq 'due' && $due));
	}
	return %can;
}

# --- what the tables say ----------------------------------------------------------

# query reads all that has changed since the last audit (or simply all), and the sums.
# One snapshot, so that workers may go on.
sub query
{
	my ($self, $all) = @_;
	my $since = $all ? "'-infinity'" : "to_timestamp($self->{since} / 1e6)";

	return <<"SQL";
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT 'now', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
SELECT 'item', subject, reservation_id, route, state, reserved_units, actual_units, operation_id,
       (extract(epoch FROM expires_at) * 1000000)::bigint
FROM limitledger.reservation
WHERE ended_at IS NULL OR ended_at >= $since;
SELECT 'usage', subject, operation_id, route, usage_units FROM limitledger.operation
WHERE usage_units IS NOT NULL AND bound_at >= $since;
SELECT 'grant', subject, grant_id, route, granted_units FROM limitledger.capacity_grant
WHERE granted_at >= $since;
SELECT 'count', state, (route IS NULL)::int, count(*) FROM limitledger.reservation GROUP BY state, route IS NULL;
SELECT 'extended', count(*), coalesce(sum(units), 0) FROM limitledger.extension;
SELECT 'bound', count(reservation_id), count(usage_units) FROM limitledger.operation;
SELECT 'expired', count(*), coalesce(sum(reserved_units), 0) FROM limitledger.reservation WHERE state = 'EXPIRED';
SELECT 'pair', subject, route, sum(reserved), sum(spent), sum(minted) + sum(burned)
FROM (SELECT subject, route, reserved, spent, minted, burned FROM limitledger.head_budget
      UNION ALL SELECT subject, route, reserved, spent, minted, burned FROM limitledger.closed_budget) b
GROUP BY 2, 3;
SELECT 'verify', v.* FROM limitledger.verify_conservation() v;
COMMIT;
SQL
}

# audit holds what query() printed against the books; returns the discrepancies.
sub audit
{
	my ($self, $printed, $all) = @_;
	my (%row, %seen);

	for (split /\n/, $printed)
	{
		my ($what, @columns) = split /\|/, $_, -1;
		push @{ $row{$what} }, \@columns;
	}
	my $now = $row{now}[0][0];
	$self->wrong('audit', 'no answer') if !defined $now;
	for my $columns (@{ $row{item} // [] })
	{
		my %stored;
		@stored{qw(subject id route state units actual operation expires)} = @$columns;
		my $item = $self->{item}{"$stored{subject} $stored{id}"};
		if (!$item) { $self->wrong("$stored{subject} $stored{id}", 'nobody asked for it'); next }
		$seen{ $item->{key} } = 1;
		$self->compare($item, \%stored, $now);
	}
	for my $item (values %{ $self->{ $all ? 'item' : 'live' } })
	{
		$self->wrong($item->{key}, "$item->{state} was lost")
		  if $item->{state} ne 'ABSENT' && !$seen{ $item->{key} };
		delete $self->{live}{ $item->{key} } if $ENDED{ $item->{state} } || ($item->{state} eq 'ABSENT' && !$item->{asking});
	}
	$self->compare_amounts($_, $row{$_} // []) for qw(usage grant);
	$self->compare_sums(\%row);
	$self->wrong('verify_conservation', join ' ', @$_) for @{ $row{verify} // [] };

	# The head's clock and this one are the same; a margin costs little.
	$self->{since} = $now - 2_000_000;
	return splice @{ $self->{errors} };
}

# compare judges a stored reservation: as known, or moved by the call under way.
sub compare
{
	my ($self, $item, $stored, $now) = @_;
	my $ask = $item->{asking} // { call => '', units => 0, operation => '' };
	my $call = $ask->{call};
	my %new = (state => $stored->{state}, expires => $stored->{expires});
	my %can = reachable($item->{state}, $call, $stored->{expires} <= $now);
	my $known = $item->{state};

	$self->wrong($item->{key}, "$stored->{state} after $known" . ($call && " and a lost $call"))
	  if !$can{ $stored->{state} };
	$new{fence} = 1 if $stored->{route} eq '';
	$new{units} = $item->{asked} if $known eq 'ABSENT' && !$new{fence};
	$self->change($item, %new);
	$self->extend($item, $ask->{operation}, $ask->{units})
	  if $call eq 'extend' && !done($item, $ask) && $stored->{units} == $item->{units} + $ask->{units};
	$item->{operation} = $ask->{operation} if $call =~ /start/ && $stored->{operation} ne '' && !defined $item->{operation};
	$self->change($item, actual => $ask->{units}) if $call eq 'settle' && $stored->{actual} ne '' && !defined $item->{actual};

	for my $column (qw(units actual operation))
	{
		my $expected = $item->{$column} // '';
		$self->wrong($item->{key}, "$column is $stored->{$column} instead of $expected")
		  if $stored->{$column} ne $expected;
	}
	$self->wrong($item->{key}, "route is $stored->{route}")
	  if !$new{fence} && (split / /, $item->{pair})[1] ne $stored->{route};
	return;
}

sub compare_amounts
{
	my ($self, $kind, $rows) = @_;

	for (@$rows)
	{
		my ($subject, $id, $route, $units) = @$_;
		my $entry = $self->{$kind}{"$subject $id"};
		if (!$entry) { $self->wrong("$kind $subject $id", 'nobody asked for it') }
		elsif (!defined $entry->{units} && ($kind eq 'grant' ? $units <= $entry->{asked} : $units == $entry->{asked}))
		{
			$self->booked($kind, $entry, $units);
		}
		elsif (!defined $entry->{units} || $units != $entry->{units} || $entry->{pair} ne "$subject $route")
		{
			$self->wrong("$kind $subject $id", "$units on $route instead of " . ($entry->{units} // $entry->{asked}));
		}
	}
	return;
}

# compare_sums: all rows together, so that none can be lost, doubled or changed unseen.
sub compare_sums
{
	my ($self, $row) = @_;
	my %count = map { ("$_->[0] $_->[1]" => $_->[2]) } @{ $row->{count} // [] };
	my %pair = map { ("$_->[0] $_->[1]" => $_) } @{ $row->{pair} // [] };
	my $bound = grep { defined $_->{operation} } values %{ $self->{item} };
	my $used = grep { defined $_->{units} } values %{ $self->{usage} };

	$self->sum_is("rows $_", $count{$_}, $self->{count}{$_}) for keys %{ { %count, %{ $self->{count} } } };
	$self->sum_is('extensions', $row->{extended}[0][0], $self->{extended});
	$self->sum_is('units of extensions', $row->{extended}[0][1], $self->{extended_units});
	$self->sum_is('bound operations', $row->{bound}[0][0], $bound);
	$self->sum_is('records of usage', $row->{bound}[0][1], $used);
	for (keys %{ { %pair, %{ $self->{pair} } } })
	{
		my ($books, $stored) = ($self->{pair}{$_} // {}, $pair{$_} // []);
		$self->sum_is("reserved of $_", $stored->[2], $books->{reserved});
		$self->sum_is("spent of $_", $stored->[3], $books->{spent});
		$self->sum_is("granted to $_", $stored->[4], $books->{granted}) if / steady$/;
	}
	my ($expired, $expired_units) = @{ $row->{expired}[0] };
	my $claimed = $expired + ($count{'EXPIRING 0'} // 0);
	$self->wrong('sweeps', "claimed $self->{swept}{claim} of $claimed") if $self->{swept}{claim} > $claimed;
	$self->wrong('sweeps', "ended $self->{swept}{finish} of $expired") if $self->{swept}{finish} > $expired;
	$self->wrong('sweeps', "gave back $self->{swept}{finish_units} of $expired_units")
	  if $self->{swept}{finish_units} > $expired_units;
	return;
}

# told_rows returns all that has taken effect: kind, subject, route, id, operation,
# units asked for, state, units held, units used.
sub told_rows
{
	my ($self) = @_;
	my @rows;

	for my $item (grep { $_->{state} ne 'ABSENT' } values %{ $self->{item} })
	{
		my ($subject, $id, $route) = (split(/ /, $item->{key}), (split / /, $item->{pair})[1]);
		push @rows, [ 'item', $subject, $route, $id, $item->{operation} // '', @{$item}{qw(asked state units)}, $item->{actual} // '' ];
		push @rows, [ 'extension', $subject, $route, $id, $_, $item->{extension}{$_}, '', '', '' ] for keys %{ $item->{extension} };
	}
	for my $kind (qw(usage grant))
	{
		for my $key (grep { defined $self->{$kind}{$_}{units} } keys %{ $self->{$kind} })
		{
			my $entry = $self->{$kind}{$key};
			push @rows, [ $kind, split(/ /, $entry->{pair}), '', (split / /, $key)[1], $entry->{asked}, '', $entry->{units}, '' ];
		}
	}
	return @rows;
}

sub sum_is
{
	my ($self, $what, $stored, $expected) = @_;

	$self->wrong($what, ($stored // 0) . ' instead of ' . ($expected // 0)) if ($stored // 0) != ($expected // 0);
	return;
}

1;
