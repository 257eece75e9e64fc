-- The protocol as the ledger prints it: every state and event, every outcome, every
-- SQLSTATE.  A change of one of them shows here.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS limitledger;
RESET client_min_messages;

SELECT * FROM limitledger.transitions();
SELECT * FROM limitledger.outcomes();
SELECT * FROM limitledger.sqlstates();
