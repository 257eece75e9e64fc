# Page.pm
#	  How the demo looks: chapters, receipts on one line each, checks, a table.

package Page;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(title chapter say_line receipt check checked table count time_of);

my $colour = -t STDOUT && !length($ENV{NO_COLOR} // '') && ($ENV{TERM} // 'dumb') ne 'dumb';
my %CODE   = (
    bold => 1, dim => 2,
    ACCEPTED => '1;32', REFUSED => '1;33', CONFLICT => '1;35', UNKNOWN => '1;36', wrong => '1;31',
);
my ($chapters, $right, $wrong) = (0, 0, 0);

sub paint {
    my ($style, $text) = @_;
    return $colour && $CODE{$style} ? "\e[$CODE{$style}m$text\e[0m" : $text;
}

sub title {
    my ($left, $right_side) = @_;
    print "\n", paint(bold => $left), ' ' x (100 - length("$left$right_side")), paint(dim => $right_side), "\n";
    return;
}

# chapter prints a heading and the sentence that says what it shows and why.
sub chapter {
    my ($heading, $sentence) = @_;
    print "\n", paint(bold => ++$chapters . "  $heading"), "\n";
    my $line = '  ';
    for my $word (split ' ', $sentence) {
        if (length("$line $word") > 100) { print "$line\n"; $line = '  ' }
        $line .= " $word";
    }
    print "$line\n\n";
    return;
}

# say_line prints who did what, when there is no receipt to show.
sub say_line {
    my ($who, $what, $detail) = @_;
    printf "   %-10s %-22s %s\n", $who, $what, $detail // '';
    return;
}

# receipt prints one answer: the outcome first, then the state or the rule that
# said no, then the figures that matter for this kind of call.
sub receipt {
    my ($who, $what, $r) = @_;
    my $word = $r->{outcome} eq 'ACCEPTED' ? $r->{state} : $r->{dimension};
    printf "   %-10s %-22s %s %-18s %s\n", $who, $what,
      paint($r->{outcome} => sprintf '%-8s', $r->{outcome}), $word, join ', ', figures($r);
    return;
}

sub figures {
    my ($r) = @_;
    if ($r->{outcome} eq 'REFUSED') {
        my $wait = !defined $r->{retry_kind} ? undef
          : defined $r->{retry_after_ms} ? sprintf('again in %.2f s', $r->{retry_after_ms} / 1000)
          : "wait for: $r->{retry_kind}";
        return grep { defined } $wait, left($r);
    }
    return ('what stands: ' . join ', ', held($r)) if $r->{outcome} eq 'CONFLICT';
    return ('nothing by that id') if $r->{outcome} eq 'UNKNOWN';
    return (($r->{replayed} eq 't' ? 'replayed' : ()), held($r), left($r));
}

# held says what the reservation holds, used or gave back.
sub held {
    my ($r) = @_;
    my ($state, $units) = @$r{qw(state reserved_units)};
    if ($state =~ /^SETTLED/) {
        my $over = $r->{excess_units} // 0;
        return 'used ' . count($r->{actual_units}) . ' of ' . count($units),
          $over ? count($over) . ' over' : count($units - $r->{actual_units}) . ' back';
    }
    return count($units) . ' held, to start by ' . time_of($r->{expires_at}) if $state eq 'RESERVED';
    return count($units) . ' held, to end by ' . time_of($r->{expires_at}) if $state eq 'STARTED';
    return count($units) . ' stay held' if $state eq 'USAGE_UNKNOWN';
    return $units ? count($units) . ' back' : 'nothing held';
}

sub left {
    my ($r) = @_;
    return unless defined $r->{available};
    return count($r->{available}) . ' of ' . count($r->{cap}) . ' available';
}

# check compares an answer with the rule that it rests on.
sub check {
    my ($ok, $claim, $rule, $got) = @_;
    if ($ok) { $right++ }
    else     { $wrong++ }
    my $mark = $ok ? paint(dim => ' ok') : paint(wrong => ' NO');
    print "   $mark ", paint($ok ? 'dim' : 'wrong', sprintf '%-84s %9s', $claim, $rule), "\n";
    print '       ', paint(wrong => "got: $got"), "\n" if !$ok && defined $got;
    return $ok;
}

sub checked { return ($right, $wrong) }

# table prints rows under a heading; numbers to the right.
sub table {
    my ($columns, @rows) = @_;
    my @width = map { length } @$columns;
    for my $row (@rows) {
        for my $i (0 .. $#$row) {
            $width[$i] = length $row->[$i] if length $row->[$i] > $width[$i];
        }
    }
    my $print = sub {
        my ($style, @cells) = @_;
        my @out = map { sprintf $rows[0] && $rows[0][$_] =~ /^[\d,]+$/ ? '%*s' : '%-*s', $width[$_], $cells[$_] } 0 .. $#cells;
        print '   ', paint($style, join '  ', @out), "\n";
    };
    $print->(bold => @$columns);
    $print->(none => @$_) for @rows;
    return;
}

# count groups a number by thousands.
sub count {
    my ($n) = @_;
    1 while $n =~ s/^(-?\d+)(\d{3})/$1,$2/;
    return $n;
}

# time_of cuts the time of day out of a timestamp in UTC.
sub time_of {
    my ($timestamp) = @_;
    return $timestamp =~ / (\d\d:\d\d:\d\d)/ ? "$1Z" : $timestamp;
}

1;
