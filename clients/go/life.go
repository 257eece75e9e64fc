// The life of a reservation, from Go with database/sql and lib/pq.
//
//	life SUBJECT        connects by PGHOST, PGPORT, PGUSER, PGDATABASE
//
// Every call may be repeated by the same ids; ask is all that a lost reply needs.
// What it prints is explained in ../README.md.
package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log"
	"math/rand"
	"os"
	"time"

	"github.com/lib/pq"
)

// Of a call that ended so nothing is left, or nobody knows: repeat it by the same ids.
var repeat = map[pq.ErrorCode]bool{"40001": true, "40P01": true, "55P03": true, "57014": true, "23505": true,
	"25006": true, "53300": true, "57P01": true, "57P02": true, "57P03": true}

const receiptColumns = `outcome, dimension, state, replayed, reserved_units, actual_units, available,
	limitledger.retry_after(retry_after_ms)`

type receipt struct {
	outcome               string
	dimension, state      sql.NullString
	replayed              bool
	reserved, actual      sql.NullInt64
	available, retryAfter sql.NullString
}

// querier is what a connection and a transaction have in common.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

type call func(ctx context.Context, conn *sql.Conn) (*receipt, error)

// errNoAnswer is neither yes nor no: ask by the same ids later, or resolve_reservation.
var errNoAnswer = errors.New("no answer")

var errUnconfirmed = errors.New("WARNING 01000: committed here, not confirmed by the standby")

// ask makes a call until its answer counts; returns it with the number of tries.
func ask(db *sql.DB, most int, c call) (*receipt, int, error) {
	var problem error
	for n := 1; n <= most; n++ {
		r, warned, err := attempt(db, c)
		if warned {
			err = errUnconfirmed
		}
		if err == nil {
			return r, n, nil
		}
		if !mayRepeat(err) {
			return nil, n, err
		}
		problem = err
		if n < most {
			pause(n)
		}
	}
	return nil, most, fmt.Errorf("%w: %v", errNoAnswer, problem)
}

// attempt makes a call once, on one connection. On sql.DB itself database/sql repeats by
// itself what lib/pq calls a bad connection, a lost reply too: harmless by the same ids,
// but without a pause, and twice at most.
func attempt(db *sql.DB, c call) (r *receipt, warned bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, false, err
	}
	defer conn.Close()
	err = conn.Raw(func(inner any) error {
		pq.SetNoticeHandler(inner.(driver.Conn), func(notice *pq.Error) { warned = warned || notice.Code == "01000" })
		return nil
	})
	if err == nil {
		r, err = c(ctx, conn)
	}
	if err != nil {
		// lib/pq does not know every broken connection when it sees one: keep none.
		conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return r, warned, err
}

// mayRepeat: an SQLSTATE from above, or no answer at all: a broken connection, a time-out,
// an answer that lib/pq did not understand.
func mayRepeat(err error) bool {
	var said *pq.Error
	if errors.As(err, &said) {
		return said.Code.Class() == "08" || repeat[said.Code]
	}
	return !errors.Is(err, sql.ErrNoRows)
}

// pause is full jitter: callers that failed together do not come back together.
func pause(n int) {
	most := 50 * time.Millisecond << (n - 1)
	if most > 2*time.Second {
		most = 2 * time.Second
	}
	time.Sleep(time.Duration(rand.Int63n(int64(most))))
}

func query(ctx context.Context, q querier, function string, args ...any) (*receipt, error) {
	var r receipt
	err := q.QueryRowContext(ctx, "SELECT "+receiptColumns+" FROM limitledger."+function, args...).Scan(
		&r.outcome, &r.dimension, &r.state, &r.replayed, &r.reserved, &r.actual, &r.available, &r.retryAfter)
	return &r, err
}

func reserve(subject, reservation string, units int64, request string) call {
	return func(ctx context.Context, conn *sql.Conn) (*receipt, error) {
		// An explicit transaction, as for a gateway that writes a row of its own along.
		// The receipt counts once Commit has returned without an error.
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		defer tx.Rollback()
		r, err := query(ctx, tx, "reserve_capacity($1, 'chat', $2, $3, limitledger.request_digest($4))",
			subject, reservation, units, request)
		if err != nil {
			return nil, err
		}
		return r, tx.Commit()
	}
}

// autocommit is a call that is a transaction of its own.
func autocommit(function string, args ...any) call {
	return func(ctx context.Context, conn *sql.Conn) (*receipt, error) {
		return query(ctx, conn, function, args...)
	}
}

func start(subject, reservation, operation string) call {
	return autocommit("start_reservation($1, $2, $3)", subject, reservation, operation)
}

func settle(subject, reservation, operation string, actual int64) call {
	return autocommit("settle_usage($1, $2, $3, $4)", subject, reservation, operation, actual)
}

func release(subject, reservation string) call {
	return autocommit("release_reservation($1, $2)", subject, reservation)
}

func resolve(subject, reservation, request string) call {
	return autocommit("resolve_reservation($1, $2, limitledger.request_digest($3))", subject, reservation, request)
}

func line(cells ...any) {
	fmt.Printf("%-8v %-4v %5v  %-9v %-10v %-9v %-8v %8v %6v %9v %11v\n", cells...)
}

// show prints an answer and hands it on; without one it is the end.
func show(step, reservation string, r *receipt, n int, err error) *receipt {
	if err != nil {
		log.Fatalf("%s %s: %v", step, reservation, err)
	}
	replayed := "no"
	if r.replayed {
		replayed = "yes"
	}
	cells := []any{step, reservation, n, r.outcome, r.dimension, r.state, replayed,
		r.reserved, r.actual, r.available, r.retryAfter}
	for i, cell := range cells {
		if value, ok := cell.(driver.Valuer); ok {
			if cells[i], _ = value.Value(); cells[i] == nil {
				cells[i] = "-"
			}
		}
	}
	line(cells...)
	return r
}

func life(db *sql.DB, subject string) {
	step := func(name, reservation string, c call) *receipt {
		r, n, err := ask(db, 8, c)
		return show(name, reservation, r, n, err)
	}
	line("step", "id", "tries", "outcome", "dimension", "state", "replayed",
		"reserved", "actual", "available", "retry-after")

	// Ids are chosen once per request of a client, a UUID say, and kept over all tries.
	// ACCEPTED alone is not enough: a late repeat may find that its hold has ended.
	r := step("reserve", "r-1", reserve(subject, "r-1", 600, `{"prompt": "hello"}`))
	if r.outcome != "ACCEPTED" || r.state.String != "RESERVED" {
		log.Fatal("r-1 holds nothing: do not go on")
	}

	// The executor's part. It runs nothing before this has been accepted.
	r = step("start", "r-1", start(subject, "r-1", "op-1"))
	if r.outcome != "ACCEPTED" || r.state.String != "STARTED" {
		log.Fatal("r-1 may not run")
	}
	step("settle", "r-1", settle(subject, "r-1", "op-1", 200))

	// A caller that can't wait tries once. Whether there was an answer or none, nothing
	// stays behind: resolve says what became of it, or fences the id, and release gives back.
	request := `{"prompt": "good morning"}`
	if r, n, err := ask(db, 1, reserve(subject, "r-2", 300, request)); errors.Is(err, errNoAnswer) {
		fmt.Println("reserve  r-2      1  no answer")
	} else {
		show("reserve", "r-2", r, n, err)
	}
	step("resolve", "r-2", resolve(subject, "r-2", request))
	step("release", "r-2", release(subject, "r-2"))

	// A refusal is a result: 429 with Retry-After in seconds, and no retry from here.
	step("reserve", "r-3", reserve(subject, "r-3", 1000, `{"prompt": "long"}`))
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: life SUBJECT")
	}
	rand.Seed(time.Now().UnixNano())

	// binary_parameters: parse, bind and execute go in one message. Without it lib/pq
	// prepares first and executes then, and a transaction pooler may send the second to
	// another server connection.
	db, err := sql.Open("postgres", "binary_parameters=yes connect_timeout=5")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(4)
	life(db, os.Args[1])
}
