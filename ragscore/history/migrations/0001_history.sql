-- The history as the first release writes it (DESIGN §6).
--
-- No keys on the tables that grow: an index makes every append slower as the file grows. A row is known by
-- the columns named beside its table; writers leave out what is there, and the end of a run audits it.
-- `attempt` is 1 in the first passage of a run and one more with each resume. A row of a later attempt
-- supersedes the earlier one of the same cell; both are kept, and the latest_* views show the later.
-- All times are UTC. NULL means "not known" or "not scored"; there is no NaN.

CREATE TABLE runs (                       -- one row per run_id
    run_id            VARCHAR NOT NULL,
    suite             VARCHAR NOT NULL,
    suite_doc         JSON,               -- the suite as written, ${VAR} unresolved
    suite_path        VARCHAR,
    base_dir          VARCHAR,            -- what relative paths in the suite start from
    dataset           VARCHAR NOT NULL,
    dataset_hash      VARCHAR NOT NULL,
    items             BIGINT NOT NULL,    -- items that the run is to score
    retriever         VARCHAR,
    version           VARCHAR,
    target            VARCHAR,
    judge             VARCHAR NOT NULL,
    judge_params      VARCHAR NOT NULL,   -- JSON text
    scorers           JSON NOT NULL,
    missing_reference VARCHAR NOT NULL,   -- zero | exclude
    duplicates        VARCHAR NOT NULL,   -- count | once
    min_coverage      DOUBLE NOT NULL,    -- below it a run is not evaluated
    trigger           VARCHAR,            -- by hand, schedule, deploy, ...
    engine            VARCHAR,            -- local | prefect
    flow_run_id       VARCHAR,
    status            VARCHAR NOT NULL,   -- running | complete | incomplete | failed | cancelled
    started_at        TIMESTAMPTZ NOT NULL,
    ended_at          TIMESTAMPTZ,
    expected_scores   BIGINT NOT NULL,    -- items x scorers
    written_scores    BIGINT,             -- counted by the audit at the end
    attempt           INTEGER NOT NULL,
    error             VARCHAR,
    ragscore_version  VARCHAR NOT NULL,
    host              VARCHAR,
    pid               BIGINT
);

CREATE TABLE items (                      -- one row per (run_id, item_id, attempt)
    run_id                VARCHAR NOT NULL,
    item_id               VARCHAR NOT NULL,
    position              BIGINT NOT NULL,   -- place in the dataset, first is 0
    attempt               INTEGER NOT NULL,
    input                 VARCHAR NOT NULL,
    reference             VARCHAR,
    reference_context_ids VARCHAR[],
    claims                VARCHAR[],         -- facts that a person wrote down; NULL when none did
    answerable            BOOLEAN NOT NULL,
    metadata              JSON,
    item_hash             VARCHAR NOT NULL,  -- of input and reference
    output                VARCHAR,           -- what the target answered
    response              JSON,              -- the target's raw answer
    returned_contexts     INTEGER,           -- how many contexts it returned; NULL when it returns none of its own
    latency_ms            DOUBLE,
    error                 VARCHAR,
    created_at            TIMESTAMPTZ NOT NULL
);

-- A set that was resolved, even to nothing or to an error: what tells a resume that there is nothing left to
-- ask. Its own table, and not a row of rank 0 in `contexts`, so that nobody who counts contexts has to know.
CREATE TABLE context_sets (               -- one row per (run_id, item_id, context_set, attempt)
    run_id      VARCHAR NOT NULL,
    item_id     VARCHAR NOT NULL,
    attempt     INTEGER NOT NULL,
    context_set VARCHAR NOT NULL,         -- the source: response, static, item, ...
    n           INTEGER NOT NULL,
    error       VARCHAR,
    created_at  TIMESTAMPTZ NOT NULL
);

CREATE TABLE contexts (                   -- one row per (run_id, item_id, context_set, attempt, rank)
    run_id       VARCHAR NOT NULL,
    item_id      VARCHAR NOT NULL,
    attempt      INTEGER NOT NULL,
    context_set  VARCHAR NOT NULL,
    rank         INTEGER NOT NULL,        -- first is 1
    context_id   VARCHAR,
    text         VARCHAR NOT NULL,
    score        DOUBLE,                  -- the retriever's own
    metadata     JSON,
    duplicate_of INTEGER                  -- the rank that it repeats
);

CREATE TABLE scores (                     -- one row per (run_id, item_id, scorer, attempt)
    run_id            VARCHAR NOT NULL,
    item_id           VARCHAR NOT NULL,
    position          BIGINT NOT NULL,
    scorer            VARCHAR NOT NULL,
    kind              VARCHAR NOT NULL,
    attempt           INTEGER NOT NULL,
    status            VARCHAR NOT NULL,
    score             DOUBLE,             -- exact x scale, rounded half up to 2 decimals
    exact             DOUBLE,             -- within 0 and 1
    exact_fraction    VARCHAR,            -- the same without rounding: 'numerator/denominator'
    scale             DOUBLE NOT NULL,
    counted           BOOLEAN NOT NULL,   -- takes part in means
    reason            VARCHAR NOT NULL,
    against           VARCHAR,
    n                 INTEGER NOT NULL,   -- claims or contexts that the score stands on
    n_positive        INTEGER NOT NULL,   -- supported or relevant ones
    context_set       VARCHAR,
    claim_set         VARCHAR,
    error             VARCHAR,
    raw               VARCHAR,
    calls             BIGINT NOT NULL,
    remembered        BIGINT NOT NULL,
    prompt_tokens     BIGINT,
    completion_tokens BIGINT,
    cached_tokens     BIGINT,
    cost_usd          DOUBLE,
    created_at        TIMESTAMPTZ NOT NULL,
    suite             VARCHAR NOT NULL,   -- from here on: what the score depends on
    retriever         VARCHAR,
    version           VARCHAR,
    target            VARCHAR,
    dataset_hash      VARCHAR NOT NULL,
    judge             VARCHAR NOT NULL,
    judge_params      VARCHAR NOT NULL,
    prompt_version    VARCHAR NOT NULL,
    scorer_version    VARCHAR NOT NULL,
    ragscore_version  VARCHAR NOT NULL
);

CREATE TABLE verdicts (                   -- any number of rows per (run_id, item_id, scorer, attempt)
    run_id       VARCHAR NOT NULL,
    item_id      VARCHAR NOT NULL,
    scorer       VARCHAR NOT NULL,
    attempt      INTEGER NOT NULL,
    kind         VARCHAR NOT NULL,        -- claim | context
    verdict_id   VARCHAR NOT NULL,
    rank         INTEGER NOT NULL,        -- of the context, or number of the claim; first is 1
    text         VARCHAR,                 -- of the claim; NULL for a context whose text is in `contexts`
    positive     BOOLEAN,                 -- supported or relevant; NULL when never decided
    why          VARCHAR NOT NULL,
    sources      INTEGER[] NOT NULL,      -- ranks of the contexts that the evidence stands in
    quotes       VARCHAR[] NOT NULL,
    verified     BOOLEAN,
    warnings     VARCHAR[] NOT NULL,
    confidence   DOUBLE,
    remembered   BOOLEAN NOT NULL,
    duplicate_of INTEGER
);

CREATE TABLE judge_calls (                -- any number of rows per (run_id, item_id, scorer, attempt)
    run_id            VARCHAR NOT NULL,
    item_id           VARCHAR NOT NULL,
    scorer            VARCHAR NOT NULL,
    attempt           INTEGER NOT NULL,
    number            INTEGER NOT NULL,   -- first is 1
    task              VARCHAR NOT NULL,
    model             VARCHAR NOT NULL,
    mode              VARCHAR NOT NULL,   -- how structure was asked for
    outcome           VARCHAR NOT NULL,   -- ok, or the kind of fault
    prompt_tokens     BIGINT,
    completion_tokens BIGINT,
    cached_tokens     BIGINT,
    cost_usd          DOUBLE,
    latency_ms        DOUBLE,
    error             VARCHAR,
    started_at        TIMESTAMPTZ
);

-- The latest attempt of each cell. Rows with attempt > 1 are rare and the zone maps of `attempt` find them without
-- reading the rest, so only those are put into the anti-join; nothing is sorted or windowed over everything.

CREATE VIEW latest_scores AS
SELECT s.*
FROM scores AS s
ANTI JOIN (SELECT run_id, item_id, scorer, attempt FROM scores WHERE attempt > 1) AS later
    ON later.run_id = s.run_id AND later.item_id = s.item_id AND later.scorer = s.scorer AND later.attempt > s.attempt;

-- Follows the scores: a later attempt without any verdict leaves the cell without verdicts.
CREATE VIEW latest_verdicts AS
SELECT v.*
FROM verdicts AS v
ANTI JOIN (SELECT run_id, item_id, scorer, attempt FROM scores WHERE attempt > 1) AS later
    ON later.run_id = v.run_id AND later.item_id = v.item_id AND later.scorer = v.scorer AND later.attempt > v.attempt;

CREATE VIEW latest_items AS
SELECT i.*
FROM items AS i
ANTI JOIN (SELECT run_id, item_id, attempt FROM items WHERE attempt > 1) AS later
    ON later.run_id = i.run_id AND later.item_id = i.item_id AND later.attempt > i.attempt;

CREATE VIEW latest_context_sets AS
SELECT c.*
FROM context_sets AS c
ANTI JOIN (SELECT run_id, item_id, context_set, attempt FROM context_sets WHERE attempt > 1) AS later
    ON later.run_id = c.run_id AND later.item_id = c.item_id AND later.context_set = c.context_set
    AND later.attempt > c.attempt;

-- Follows the sets, and the contexts themselves where a response is stored whose sets are not resolved yet.
CREATE VIEW latest_contexts AS
SELECT c.*
FROM contexts AS c
ANTI JOIN (
    SELECT run_id, item_id, context_set, attempt FROM context_sets WHERE attempt > 1
    UNION
    SELECT run_id, item_id, context_set, attempt FROM contexts WHERE attempt > 1
) AS later
    ON later.run_id = c.run_id AND later.item_id = c.item_id AND later.context_set = c.context_set
    AND later.attempt > c.attempt;

-- One row per run and scorer, over the latest attempts. First the scores by status, once over the rows; then the
-- few rows of that are put side by side, which costs nothing. What people filter by, suite and time, comes from
-- `runs` below the grouping, so that such a filter reaches the scan; it does not pass a grouping by itself.
CREATE VIEW score_history AS
WITH by_status AS (
    SELECT
        s.run_id,
        r.suite,
        r.started_at,
        s.scorer,
        s.status,
        any_value(s.kind) AS kind,
        any_value(s.judge) AS judge,
        any_value(s.scale) AS scale,
        count(*) AS n_rows,
        count(exact) AS n_scored,
        count(exact) FILTER (counted) AS n_counted,
        sum(exact) FILTER (counted) AS total,
        min(against) AS against_first,
        max(against) AS against_last,
        sum(calls) AS calls,
        sum(remembered) AS remembered,
        count(cost_usd) AS n_priced,
        sum(cost_usd) AS cost_usd
    FROM latest_scores AS s
    JOIN runs AS r ON r.run_id = s.run_id
    GROUP BY s.run_id, r.suite, r.started_at, s.scorer, s.status
), by_scorer AS (
    SELECT
        run_id,
        suite,
        started_at,
        scorer,
        any_value(kind) AS kind,
        any_value(judge) AS judge,
        any_value(scale) AS scale,
        sum(total) / nullif(sum(n_counted), 0) AS mean_exact,
        sum(n_counted)::BIGINT AS n,
        sum(n_scored)::BIGINT AS scored,
        coalesce(sum(n_rows) FILTER (status <> 'unanswerable'), 0)::BIGINT AS eligible,
        sum(n_rows)::BIGINT AS n_rows,
        min(against_first) FILTER (n_scored > 0) AS against_first,
        max(against_last) FILTER (n_scored > 0) AS against_last,
        sum(calls)::BIGINT AS calls,
        sum(remembered)::BIGINT AS remembered,
        CASE WHEN sum(n_priced) = sum(n_rows) THEN sum(cost_usd) END AS cost_usd,
        coalesce(sum(n_rows) FILTER (status = 'ok'), 0)::BIGINT AS ok,
        coalesce(sum(n_rows) FILTER (status = 'no_reference'), 0)::BIGINT AS no_reference,
        coalesce(sum(n_rows) FILTER (status = 'no_context'), 0)::BIGINT AS no_context,
        coalesce(sum(n_rows) FILTER (status = 'no_claims'), 0)::BIGINT AS no_claims,
        coalesce(sum(n_rows) FILTER (status = 'unanswerable'), 0)::BIGINT AS unanswerable,
        coalesce(sum(n_rows) FILTER (status = 'abstained'), 0)::BIGINT AS abstained,
        coalesce(sum(n_rows) FILTER (status = 'budget'), 0)::BIGINT AS budget,
        coalesce(sum(n_rows) FILTER (status = 'target_error'), 0)::BIGINT AS target_error,
        coalesce(sum(n_rows) FILTER (status = 'context_error'), 0)::BIGINT AS context_error,
        coalesce(sum(n_rows) FILTER (status = 'judge_error'), 0)::BIGINT AS judge_error,
        coalesce(sum(n_rows) FILTER (status = 'scorer_error'), 0)::BIGINT AS scorer_error
    FROM by_status
    GROUP BY run_id, suite, started_at, scorer
)
SELECT
    s.run_id,
    s.suite,
    r.retriever,
    r.version,
    s.scorer,
    s.kind,
    s.judge,
    r.status,                                     -- of the run
    s.started_at,
    r.dataset,
    r.dataset_hash,
    round(s.mean_exact * s.scale, 4) AS mean,     -- in the scorer's scale
    s.mean_exact,                                 -- within 0 and 1, not rounded; NULL when n = 0
    s.scale,
    s.n,                                          -- rows in the mean
    s.scored,                                     -- rows with a score
    s.eligible,                                   -- rows written, all but `unanswerable`
    r.items,                                      -- items that the run is to score
    s.scored / nullif(s.eligible, 0) AS coverage, -- NULL when nothing is eligible
    s.ok,
    s.no_reference,
    s.no_context,
    s.no_claims,
    s.unanswerable,
    s.abstained,
    s.budget,
    s.target_error,
    s.context_error,
    s.judge_error,
    s.scorer_error,
    CASE WHEN s.against_first = s.against_last THEN s.against_first END AS against,
    coalesce(s.against_first <> s.against_last, false) AS against_mixed,
    s.calls,                                      -- of the latest attempts; like all that follow
    s.remembered,
    s.cost_usd                                    -- NULL when a part of it is unknown
FROM by_scorer AS s
JOIN runs AS r ON r.run_id = s.run_id;
