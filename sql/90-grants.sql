-- Nothing is executable or readable by PUBLIC (I1): roles get what they are granted.

REVOKE ALL ON ALL TABLES IN SCHEMA @extschema@ FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA @extschema@ FROM PUBLIC;
