#!/usr/bin/node
// The life of a reservation, from JavaScript with node-postgres.
//
//     life.js SUBJECT        connects by PGHOST, PGPORT, PGUSER, PGDATABASE
//
// Every call may be repeated by the same ids; ask() is all that a lost reply needs.
// What it prints is explained in ../README.md; units.js shows 64-bit units.
'use strict';

const { DatabaseError, Pool } = require('pg');

// Of a call that ended so nothing is left, or nobody knows: repeat it by the same ids.
const REPEAT = new Set(
  ['40001', '40P01', '55P03', '57014', '23505', '25006', '53300', '57P01', '57P02', '57P03']);

// Units come as text, which is what node-postgres makes of bigint: leave it so, and use
// BigInt() to calculate. A Number is exact up to 2^53 only.
const RECEIPT = `outcome, dimension, state, replayed, reserved_units, actual_units, available,
  limitledger.retry_after(retry_after_ms) AS retry_after`;

// No query here has a `name`: a named one stays prepared, and behind a transaction pooler
// the next call may be on another server connection.
const pool = new Pool({ max: 4, connectionTimeoutMillis: 5000, query_timeout: 10000 });
pool.on('error', () => {});        // an idle connection broke; the pool has dropped it

class NoAnswer extends Error {}    // neither yes nor no: ask by the same ids later, or resolve

// ask makes a call until its answer counts; returns it with the number of tries.
async function ask(call, tries = 8) {
  let problem;
  for (let n = 1; n <= tries; n++) {
    try {
      const { receipt, warned } = await attempt(call);
      if (!warned) return { receipt, n };
      problem = 'WARNING 01000: committed here, not confirmed by the standby';
    } catch (error) {
      if (!mayRepeat(error)) throw error;
      problem = error;
    }
    // Full jitter: callers that failed together do not come back together.
    if (n < tries) await sleep(Math.random() * Math.min(2000, 50 * 2 ** (n - 1)));
  }
  throw new NoAnswer(`no answer: ${problem}`);
}

async function attempt(call) {
  const client = await pool.connect();
  let warned = false;
  let problem;
  const onNotice = notice => { warned = warned || notice.code === '01000'; };
  const onError = () => {};        // what the query meets, too
  client.on('notice', onNotice);
  client.on('error', onError);
  try {
    return { receipt: await call(client), warned };
  } catch (error) {
    problem = error;
    throw error;
  } finally {
    client.off('notice', onNotice);
    client.off('error', onError);
    client.release(problem);       // with an error the connection is closed, not kept
  }
}

// mayRepeat: an SQLSTATE from above, or no answer at all: a broken connection, a time-out.
function mayRepeat(error) {
  if (error instanceof DatabaseError) return error.code.startsWith('08') || REPEAT.has(error.code);
  return /^E[A-Z]+$/.test(error.code || '') || /terminated|timeout/i.test(error.message);
}

const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

function reserve(subject, reservation, units, request) {
  return async client => {
    // An explicit transaction, as for a gateway that writes a row of its own along. The
    // receipt counts once COMMIT has succeeded. After an error there is no ROLLBACK to
    // send, as the connection is closed.
    await client.query('BEGIN');
    const { rows } = await client.query(
      `SELECT ${RECEIPT} FROM limitledger.reserve_capacity($1, 'chat', $2, $3,
         limitledger.request_digest($4))`,
      [subject, reservation, units, request]);
    await client.query('COMMIT');
    return rows[0];
  };
}

// autocommit: a call that is a transaction of its own.
function autocommit(expression, ...values) {
  return async client => {
    const { rows } = await client.query(`SELECT ${RECEIPT} FROM limitledger.${expression}`, values);
    return rows[0];
  };
}

const start = (subject, reservation, operation) =>
  autocommit('start_reservation($1, $2, $3)', subject, reservation, operation);
const settle = (subject, reservation, operation, actual) =>
  autocommit('settle_usage($1, $2, $3, $4)', subject, reservation, operation, actual);
const release = (subject, reservation) =>
  autocommit('release_reservation($1, $2)', subject, reservation);
const resolve = (subject, reservation, request) =>
  autocommit('resolve_reservation($1, $2, limitledger.request_digest($3))', subject, reservation, request);

function line(step, reservation, tries, outcome, dimension, state, replayed, ...figures) {
  console.log(step.padEnd(8), reservation.padEnd(4), String(tries).padStart(5), '', outcome.padEnd(9),
    dimension.padEnd(10), state.padEnd(9), replayed.padEnd(8),
    ...figures.map((figure, i) => figure.padStart([8, 6, 9, 11][i])));
}

function show(step, reservation, { receipt, n }) {
  line(step, reservation, n,
    ...Object.values(receipt).map(cell => ({ true: 'yes', false: 'no', null: '-' })[cell] || cell));
  return receipt;
}

async function life(subject) {
  line('step', 'id', 'tries', 'outcome', 'dimension', 'state', 'replayed',
    'reserved', 'actual', 'available', 'retry-after');

  // Ids are chosen once per request of a client, a UUID say, and kept over all tries.
  // ACCEPTED alone is not enough: a late repeat may find that its hold has ended.
  let receipt = show('reserve', 'r-1', await ask(reserve(subject, 'r-1', '600', '{"prompt": "hello"}')));
  if (receipt.outcome !== 'ACCEPTED' || receipt.state !== 'RESERVED')
    throw new Error('r-1 holds nothing: do not go on');

  // The executor's part. It runs nothing before this has been accepted.
  receipt = show('start', 'r-1', await ask(start(subject, 'r-1', 'op-1')));
  if (receipt.outcome !== 'ACCEPTED' || receipt.state !== 'STARTED')
    throw new Error('r-1 may not run');
  show('settle', 'r-1', await ask(settle(subject, 'r-1', 'op-1', '200')));

  // A caller that can't wait tries once. Whether there was an answer or none, nothing
  // stays behind: resolve says what became of it, or fences the id, and release gives back.
  const request = '{"prompt": "good morning"}';
  try {
    show('reserve', 'r-2', await ask(reserve(subject, 'r-2', '300', request), 1));
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    console.log('reserve  r-2      1  no answer');
  }
  show('resolve', 'r-2', await ask(resolve(subject, 'r-2', request)));
  show('release', 'r-2', await ask(release(subject, 'r-2')));

  // A refusal is a result: 429 with Retry-After in seconds, and no retry from here.
  show('reserve', 'r-3', await ask(reserve(subject, 'r-3', '1000', '{"prompt": "long"}')));
}

life(process.argv[2])
  .catch(error => { console.error(String(error)); process.exitCode = 1; })
  .finally(() => pool.end());
