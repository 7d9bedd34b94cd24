-- What the judge's model said to each request. Alone in this step, as 0002.

ALTER TABLE judge_calls ADD COLUMN reply VARCHAR;  -- NULL where none came, under store_text: hash, and before this step
