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
my ($chapters, $right, $wrong, $checking) = (0, 0, 0, 0);

sub paint {
    my ($style, $text) = @_;
    return $colour && $CODE{$style} ? "\e[$CODE{$style}m$text\e[0m" : $text;
}

use constant WIDTH => 100;

sub title {
    my ($left, $right_side, $below) = @_;
    print "\n", paint(bold => $left), ' ' x (WIDTH - length "$left$right_side"), paint(dim => $right_side), "\n";
    print paint(dim => $below), "\n";
    return;
}

# chapter prints a heading and the sentences that say what it shows and why.
sub chapter {
    my ($heading, $sentences) = @_;
    $checking = 0;
    print "\n", paint(bold => ++$chapters . "  $heading"), "\n";
    my $line = '  ';
    for my $word (split ' ', $sentences) {
        if (length "$line $word" > WIDTH) { print "$line\n"; $line = '  ' }
        $line .= " $word";
    }
    print "$line\n\n";
    return;
}

# say_line prints who did what, where there is no receipt to show.
sub say_line {
    my ($who, $what, $detail) = @_;
    printf "   %-10s %-21s %s\n", $who, $what, $detail;
    return;
}

# receipt prints one answer on one line: the outcome, then the state or the rule
# that said no, what is left, and the figure that matters for this kind of call.
sub receipt {
    my ($who, $what, $r) = @_;
    my $word = $r->{outcome} eq 'ACCEPTED' ? $r->{state} : $r->{dimension};
    my $left = defined $r->{available} ? count($r->{available}) . '/' . count($r->{cap}) . ' left' : '';
    my $line = sprintf '   %-10s %-21s %s  %s%*s  %s', $who, $what,
      paint($r->{outcome} => sprintf '%-8s', $r->{outcome}), $word, 33 - length $word, " $left", figure($what, $r);
    print $line =~ s/ +$//r, "\n";
    return;
}

sub figure {
    my ($what, $r) = @_;
    if ($r->{outcome} eq 'REFUSED') {
        return '' unless defined $r->{retry_kind};
        return sprintf 'again in %.2f s', $r->{retry_after_ms} / 1000 if defined $r->{retry_after_ms};
        return $r->{retry_kind} eq 'never' ? 'never as it is' : "wait for $r->{retry_kind}";
    }
    return 'nothing by that id' if $r->{outcome} eq 'UNKNOWN';
    if ($r->{outcome} eq 'CONFLICT') {
        return 'nothing changed' unless defined $r->{actual_units};
        return count($r->{actual_units}) . ' stands';
    }
    return $r->{replayed} eq 't' && $what !~ /^(?:get|resolve)/ ? 'replayed' : held($r);
}

# held says what the reservation holds, has used or has given back.
sub held {
    my ($r) = @_;
    my ($state, $units, $used) = ($r->{state}, count($r->{reserved_units}), $r->{actual_units});
    return count($used) . ($used > $r->{reserved_units} ? " used, not $units" : " of $units used") if defined $used;
    return "$units until " . time_of($r->{expires_at}) if $state =~ /^(?:RESERVED|STARTED)$/;
    return "$units stay held" if $state eq 'USAGE_UNKNOWN';
    return $units ? "$units back" : 'fenced';
}

# check counts whether an answer is what its rule says; a chapter ends with its checks.
sub check {
    my ($ok, $claim, $rule, $got) = @_;
    if ($ok) { $right++ }
    else     { $wrong++ }
    print "\n" unless $checking++;
    my $mark = $ok ? paint(dim => ' ok') : paint(wrong => ' NO');
    print "   $mark ", paint($ok ? 'dim' : 'wrong', sprintf '%-83s %9s', $claim, $rule), "\n";
    print '       ', paint(wrong => "got: $got"), "\n" if !$ok && defined $got;
    return $ok;
}

sub checked { return ($right, $wrong) }

# table prints rows under a heading; numbers to the right.
sub table {
    my ($columns, @rows) = @_;
    my @width = map { length } @$columns;
    my @right = map { /^[\d,]+$/ ? 1 : 0 } @{ $rows[0] // [] };
    for my $row (@rows) {
        for my $i (0 .. $#$row) {
            $width[$i] = length $row->[$i] if length $row->[$i] > $width[$i];
        }
    }
    my $print = sub {
        my ($style, @cells) = @_;
        my @out = map { sprintf $right[$_] ? '%*s' : '%-*s', $width[$_], $cells[$_] } 0 .. $#cells;
        print '   ', paint($style, join(' ', @out) =~ s/ +$//r), "\n";
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
