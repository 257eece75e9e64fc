#!/usr/bin/node
// Units above 2^53 in JavaScript: exact as text and as BigInt, wrong as a Number.
//
//     units.js SUBJECT        connects by PGHOST, PGPORT, PGUSER, PGDATABASE
//
// 9007199254740993 is the first whole number that no Number holds.
'use strict';

const { Client } = require('pg');

const UNITS = '9007199254740993';    // text on the way in; a BigInt is sent as text, too

async function units(subject) {
  const client = new Client();
  await client.connect();
  const one = async (sql, ...values) => (await client.query(sql, values)).rows[0];
  const show = (where, value) => console.log(`${where.padEnd(10)} ${typeof value}  ${value}`);

  // A column: bigint comes as text.
  const receipt = await one(
    `SELECT reserved_units, available FROM limitledger.reserve_capacity($1, 'chat', 'r-1', $2,
       limitledger.request_digest('{}'))`, subject, UNITS);
  show('column', receipt.reserved_units);

  // Arithmetic: BigInt, never + on two texts (which glues them), Number or parseInt.
  show('sum', BigInt(receipt.reserved_units) + BigInt(receipt.available));

  // The whole row as one value comes as the text of a composite.
  const { composite } = await one(
    `SELECT r AS composite FROM limitledger.get_reservation($1, 'r-1') r`, subject);
  show('composite', composite.split(',').find(field => field === UNITS));

  // The document: node-postgres parses jsonb with JSON.parse, and units are strings in it.
  const { document } = await one(
    `SELECT limitledger.get_reservation_document($1, 'r-1') AS document`, subject);
  show('document', document.reservedUnits);

  // Your own JSON: make them strings. As JSON numbers JSON.parse would round them.
  const { own } = await one(
    `SELECT jsonb_build_object('units', reserved_units::text) AS own
     FROM limitledger.get_reservation($1, 'r-1')`, subject);
  show('own JSON', own.units);

  // An error: the figure stands in the text of its detail.
  const error = await one(
    `SELECT FROM limitledger.reserve_capacity($1, 'chat', 'r-2', $2, limitledger.request_digest('{}'))`,
    subject, '-' + UNITS).catch(problem => problem);
  show('error', `${error.code} ${error.detail}`);

  await client.end();
}

units(process.argv[2]).catch(error => { console.error(error); process.exitCode = 1; });
