#!/usr/bin/python3
"""The life of a reservation, from Python with psycopg 3.

    life.py SUBJECT        connects by PGHOST, PGPORT, PGUSER, PGDATABASE

Every call may be repeated by the same ids; ask() is all that a lost reply needs.
What it prints is explained in ../README.md.
"""
import random
import sys
import time

import psycopg
from psycopg.rows import dict_row

# Of a call that ended so nothing is left, or nobody knows: repeat it by the same ids.
REPEAT = {"40001", "40P01", "55P03", "57014", "23505", "25006", "53300", "57P01", "57P02", "57P03"}

RECEIPT = """outcome, dimension, state, replayed, reserved_units, actual_units, available,
             limitledger.retry_after(retry_after_ms) AS retry_after"""


class NoAnswer(Exception):
    """Neither yes nor no: ask by the same ids later, or resolve_reservation."""


class Ledger:
    def __init__(self):
        self.connection = None
        self.warnings = []

    def ask(self, call, tries=8):
        """Makes a call until its answer counts; returns it with the number of tries."""
        problem = None
        for n in range(1, tries + 1):
            self.warnings.clear()
            try:
                receipt = call(self.connected())
                if "01000" not in self.warnings:
                    return receipt, n
                problem = "WARNING 01000: committed here, not confirmed by the standby"
            except psycopg.Error as error:
                self.disconnect()
                lost = error.sqlstate is None or error.sqlstate.startswith("08")
                if not lost and error.sqlstate not in REPEAT:
                    raise
                problem = error
            if n < tries:
                # Full jitter: callers that failed together do not come back together.
                time.sleep(random.uniform(0, min(2.0, 0.05 * 2 ** (n - 1))))
        raise NoAnswer(problem)

    def connected(self):
        if self.connection is None:
            self.connection = psycopg.connect(
                connect_timeout=5,
                autocommit=True,         # a call is a transaction, unless it says otherwise
                prepare_threshold=None,  # behind a transaction pooler no statement stays prepared
                row_factory=dict_row)
            self.connection.add_notice_handler(lambda notice: self.warnings.append(notice.sqlstate))
        return self.connection

    def disconnect(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


def reserve(subject, reservation, units, request):
    def call(connection):
        # An explicit transaction, as for a gateway that writes a row of its own along.
        # The receipt counts once the block has been left: that is the COMMIT.
        with connection.transaction():
            return connection.execute(
                f"""SELECT {RECEIPT} FROM limitledger.reserve_capacity(%s, 'chat', %s, %s,
                           limitledger.request_digest(%s))""",
                (subject, reservation, units, request)).fetchone()
    return call


def autocommit(function, *arguments):
    def call(connection):
        marks = ", ".join(["%s"] * len(arguments))
        return connection.execute(
            f"SELECT {RECEIPT} FROM limitledger.{function}({marks})", arguments).fetchone()
    return call


def start(subject, reservation, operation):
    return autocommit("start_reservation", subject, reservation, operation)


def settle(subject, reservation, operation, actual):
    return autocommit("settle_usage", subject, reservation, operation, actual)


def release(subject, reservation):
    return autocommit("release_reservation", subject, reservation)


def resolve(subject, reservation, request):
    def call(connection):
        return connection.execute(
            f"""SELECT {RECEIPT} FROM limitledger.resolve_reservation(%s, %s,
                       limitledger.request_digest(%s))""",
            (subject, reservation, request)).fetchone()
    return call


LINE = "{:<8} {:<4} {:>5}  {:<9} {:<10} {:<9} {:<8} {:>8} {:>6} {:>9} {:>11}".format


def text(cell):
    return "-" if cell is None else "yes" if cell is True else "no" if cell is False else cell


def show(step, reservation, receipt, tries):
    print(LINE(step, reservation, tries, *map(text, receipt.values())))
    return receipt


def life(subject):
    ledger = Ledger()
    print(LINE("step", "id", "tries", "outcome", "dimension", "state", "replayed",
               "reserved", "actual", "available", "retry-after"))

    # Ids are chosen once per request of a client, a UUID say, and kept over all tries.
    # ACCEPTED alone is not enough: a late repeat may find that its hold has ended.
    receipt = show("reserve", "r-1", *ledger.ask(reserve(subject, "r-1", 600, '{"prompt": "hello"}')))
    if (receipt["outcome"], receipt["state"]) != ("ACCEPTED", "RESERVED"):
        sys.exit("r-1 holds nothing: do not go on")

    # The executor's part. It runs nothing before this has been accepted.
    receipt = show("start", "r-1", *ledger.ask(start(subject, "r-1", "op-1")))
    if (receipt["outcome"], receipt["state"]) != ("ACCEPTED", "STARTED"):
        sys.exit("r-1 may not run")
    show("settle", "r-1", *ledger.ask(settle(subject, "r-1", "op-1", 200)))

    # A caller that can't wait tries once. Whether there was an answer or none, nothing
    # stays behind: resolve says what became of it, or fences the id, and release gives back.
    request = '{"prompt": "good morning"}'
    try:
        show("reserve", "r-2", *ledger.ask(reserve(subject, "r-2", 300, request), tries=1))
    except NoAnswer:
        print("reserve  r-2      1  no answer")
    show("resolve", "r-2", *ledger.ask(resolve(subject, "r-2", request)))
    show("release", "r-2", *ledger.ask(release(subject, "r-2")))

    # A refusal is a result: 429 with Retry-After in seconds, and no retry from here.
    show("reserve", "r-3", *ledger.ask(reserve(subject, "r-3", 1000, '{"prompt": "long"}')))


if __name__ == "__main__":
    life(sys.argv[1])
