// flexible.js: rate-limiter-flexible on PostgreSQL, as its documentation shows it.
//
//   node flexible.js SOCKET WORKLOAD CLIENTS SECONDS
//
// A process of its own in which CLIENTS loops consume, over a pool of as many
// connections.  Prints the line that bench/load.c prints.
'use strict';
const { Pool } = require('pg');
const { RateLimiterPostgres } = require('rate-limiter-flexible');

const UNITS = 10;
const PAIRS = 10000;
const WARM_UP = 0.25;

const [host, workload, clientCount, secondCount] = process.argv.slice(2);
const clients = Number(clientCount);
const seconds = Number(secondCount);
const pool = new Pool({ host, user: 'postgres', database: 'postgres', max: clients });

function now() {
  return Number(process.hrtime.bigint()) / 1e9;
}

function open() {
  return new Promise((resolve, reject) => {
    const limiter = new RateLimiterPostgres(
      { storeClient: pool, tableName: 'bench_flexible', keyPrefix: '', points: 2e9, duration: 86400 },
      (error) => (error ? reject(error) : resolve(limiter)));
  });
}

async function main() {
  const limiter = await open();
  const warm = (await Promise.all(Array.from({ length: clients }, () => pool.connect())));
  warm.forEach((one) => one.release());

  // The first consumption of each connection fills its backend's caches.
  await Promise.all(Array.from({ length: clients }, () => limiter.consume('warm', 0)));

  const latencies = [];
  const from = now() + seconds * WARM_UP;
  const until = from + seconds;
  let units = 0;

  async function client() {
    while (now() < until) {
      const pair = workload === 'hot' ? 0 : Math.floor(Math.random() * PAIRS);
      const sent = now();
      await limiter.consume(`tenant-${pair}`, UNITS);
      const answered = now();
      units += UNITS;
      if (answered >= from && answered < until) latencies.push(answered - sent);
    }
  }
  await Promise.all(Array.from({ length: clients }, client));
  await pool.end();

  latencies.sort((a, b) => a - b);
  const at = (share) => ((latencies[Math.floor(latencies.length * share)] ?? 0) * 1000).toFixed(3);
  const mean = latencies.reduce((sum, one) => sum + one, 0) * 1000 / (latencies.length || 1);
  console.log(`clients calls=${latencies.length} rate=${(latencies.length / seconds).toFixed(1)} ` +
    `p50=${at(0.5)} p99=${at(0.99)} mean=${mean.toFixed(3)} units=${units}`);
  process.exit(0);    // the limiter keeps a timer
}

main().catch((error) => {
  console.error(`flexible: ${error.message ?? JSON.stringify(error)}`);
  process.exit(1);
});
