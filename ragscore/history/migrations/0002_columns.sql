-- New columns. Alone in this step: DuckDB 1.5 does not commit a transaction that alters a table and then fills it.

ALTER TABLE runs ADD COLUMN gate_verdict VARCHAR;  -- pass | fail | inconclusive; NULL without a gate
ALTER TABLE runs ADD COLUMN gate JSON;             -- the numbers that it stands on
ALTER TABLE runs ADD COLUMN store_text VARCHAR;    -- full | hash

-- Beside the score, so that an item can be followed over its runs without reading `items`.
ALTER TABLE scores ADD COLUMN item_hash VARCHAR;   -- of input and reference

-- A later attempt of the same score is there. Kept by the writer: to tell it from the rows themselves takes a join by
-- item, which costs a view over many rows as much as all the rest.
ALTER TABLE scores ADD COLUMN superseded BOOLEAN DEFAULT false;
ALTER TABLE verdicts ADD COLUMN superseded BOOLEAN DEFAULT false;
