-- limitledger: one shared, linearizable capacity ledger.
--
-- This script is joined from sql/NN-chapter.sql.  Private tables are singular,
-- public views plural.  Every rule number (A1 ... J5) is one of docs/rules.md.

\echo Use "CREATE EXTENSION limitledger" to load this file. \quit

-- Nothing in this schema is for PUBLIC (I1).
REVOKE ALL ON SCHEMA @extschema@ FROM PUBLIC;
