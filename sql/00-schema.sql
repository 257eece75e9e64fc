-- limitledger: one shared, linearizable capacity ledger.
--
-- This script is joined from sql/NN-chapter.sql.  Private tables are singular,
-- public views plural.  Every rule number (A1 ... J5) is one of docs/rules.md.

\echo Use "CREATE EXTENSION limitledger" to load this file. \quit

-- Nothing in this schema is for PUBLIC (I1).
REVOKE ALL ON SCHEMA @extschema@ FROM PUBLIC;

-- Lengths and digests are checked alike wherever they are stored (A1, A5).
CREATE DOMAIN ledger_text AS text COLLATE "C"
  CONSTRAINT ledger_text_length CHECK (octet_length(VALUE) BETWEEN 1 AND 256);

CREATE DOMAIN sha256 AS bytea
  CONSTRAINT sha256_length CHECK (octet_length(VALUE) = 32);
