-- What is found out about runs (comparisons, noise, calibrations), the claims that were used, and the views that answer
-- the usual questions; and what is new in 0002, for the rows that are there.

UPDATE runs SET store_text = 'full';

UPDATE scores SET item_hash = known.item_hash
FROM (SELECT run_id, item_id, any_value(item_hash) AS item_hash FROM items GROUP BY run_id, item_id) AS known
WHERE known.run_id = scores.run_id AND known.item_id = scores.item_id;

UPDATE scores SET superseded = true
FROM (SELECT run_id, item_id, scorer, max(attempt) AS attempt FROM scores WHERE attempt > 1 GROUP BY ALL) AS later
WHERE later.run_id = scores.run_id AND later.item_id = scores.item_id AND later.scorer = scores.scorer
    AND later.attempt > scores.attempt;

UPDATE verdicts SET superseded = true
FROM (SELECT run_id, item_id, scorer, attempt FROM scores WHERE superseded) AS earlier
WHERE earlier.run_id = verdicts.run_id AND earlier.item_id = verdicts.item_id AND earlier.scorer = verdicts.scorer
    AND earlier.attempt = verdicts.attempt;

CREATE TABLE claims (                     -- one row per (claim_set, number): the facts that scores stand on
    claim_set    VARCHAR NOT NULL,
    number       INTEGER NOT NULL,        -- first is 1
    text         VARCHAR NOT NULL,
    item_hash    VARCHAR,                 -- of the item that it was first used for
    first_run_id VARCHAR NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL
);

INSERT INTO claims
SELECT claim_set, rank, text, item_hash, run_id, created_at
FROM (
    SELECT s.claim_set, v.rank, v.text, s.item_hash, s.run_id, s.created_at
    FROM scores AS s
    JOIN verdicts AS v
        ON v.run_id = s.run_id AND v.item_id = s.item_id AND v.scorer = s.scorer AND v.attempt = s.attempt
    WHERE s.claim_set IS NOT NULL AND v.kind = 'claim' AND v.text IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY s.claim_set, v.rank ORDER BY s.created_at, s.run_id, s.item_id) = 1
);

CREATE TABLE comparisons (                -- one row per (comparison_id, scorer)
    comparison_id   VARCHAR NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    baseline_run_id VARCHAR NOT NULL,
    run_id          VARCHAR NOT NULL,
    suite           VARCHAR NOT NULL,
    scorer          VARCHAR NOT NULL,
    n               BIGINT NOT NULL,      -- pairs: items scored on both sides
    mean_before     DOUBLE,               -- this and all that follow within 0 and 1, over the pairs
    mean_after      DOUBLE,
    difference      DOUBLE,
    low             DOUBLE,               -- of the interval of the difference
    high            DOUBLE,
    p               DOUBLE,               -- one-sided: of a drop
    p_adjusted      DOUBLE,               -- after Holm, over the gated scorers
    mdd             DOUBLE,               -- minimum detectable difference
    verdict         VARCHAR,              -- pass | fail | inconclusive
    forced          BOOLEAN NOT NULL,     -- runs that are not alike were compared all the same
    details         JSON
);

CREATE TABLE noise (                      -- one row per (noise_id, scorer): the same retrievals judged again
    noise_id       VARCHAR NOT NULL,
    created_at     TIMESTAMPTZ NOT NULL,
    run_id         VARCHAR NOT NULL,
    suite          VARCHAR NOT NULL,
    scorer         VARCHAR NOT NULL,
    judge          VARCHAR NOT NULL,
    judge_params   VARCHAR,
    prompt_version VARCHAR,
    repeats        INTEGER NOT NULL,
    n              BIGINT NOT NULL,       -- items
    flip_rate      DOUBLE,                -- share of verdicts that are not the same in every repeat
    spread         DOUBLE,                -- of the mean over the repeats, within 0 and 1
    floor          DOUBLE,                -- the smallest drop of a mean that is not noise, within 0 and 1
    details        JSON
);

CREATE TABLE calibrations (               -- one row per (calibration_id, kind): a judge against people
    calibration_id    VARCHAR NOT NULL,
    created_at        TIMESTAMPTZ NOT NULL,
    judge             VARCHAR NOT NULL,
    judge_params      VARCHAR,
    prompt_version    VARCHAR,
    labels            VARCHAR NOT NULL,   -- the file of human verdicts
    labels_hash       VARCHAR,
    kind              VARCHAR NOT NULL,   -- claim | context
    n                 BIGINT NOT NULL,    -- verdicts that both gave
    true_positive     BIGINT NOT NULL,
    false_positive    BIGINT NOT NULL,
    false_negative    BIGINT NOT NULL,
    true_negative     BIGINT NOT NULL,
    balanced_accuracy DOUBLE,
    kappa             DOUBLE,
    mcc               DOUBLE,
    "precision"       DOUBLE,
    recall            DOUBLE,
    drifted           BOOLEAN,            -- agreement fell since the calibration before; NULL for the first
    details           JSON
);

-- As in 0001, by the mark that the writer keeps. Verdicts follow the scores: a later attempt without any verdict
-- leaves the cell without verdicts.
CREATE OR REPLACE VIEW latest_scores AS
SELECT * EXCLUDE (superseded) FROM scores WHERE NOT superseded;

CREATE OR REPLACE VIEW latest_verdicts AS
SELECT * EXCLUDE (superseded) FROM verdicts WHERE NOT superseded;

-- As in 0001, in one grouping so that figures nobody asks for are not computed; and at the end the gate's verdict.
CREATE OR REPLACE VIEW score_history AS
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
    s.cost_usd,                                   -- NULL when a part of it is unknown
    r.gate_verdict                                -- of the run: pass | fail | inconclusive; NULL without a gate
FROM (
    SELECT
        s.run_id,
        r.suite,
        r.started_at,
        s.scorer,
        any_value(s.kind) AS kind,
        any_value(s.judge) AS judge,
        any_value(s.scale) AS scale,
        avg(s.exact) FILTER (s.counted) AS mean_exact,
        count(s.exact) FILTER (s.counted) AS n,
        count(s.exact) AS scored,
        count(*) FILTER (s.status <> 'unanswerable') AS eligible,
        min(s.against) FILTER (s.exact IS NOT NULL) AS against_first,
        max(s.against) FILTER (s.exact IS NOT NULL) AS against_last,
        sum(s.calls)::BIGINT AS calls,
        sum(s.remembered)::BIGINT AS remembered,
        CASE WHEN count(s.cost_usd) = count(*) THEN sum(s.cost_usd) END AS cost_usd,
        count(*) FILTER (s.status = 'ok') AS ok,
        count(*) FILTER (s.status = 'no_reference') AS no_reference,
        count(*) FILTER (s.status = 'no_context') AS no_context,
        count(*) FILTER (s.status = 'no_claims') AS no_claims,
        count(*) FILTER (s.status = 'unanswerable') AS unanswerable,
        count(*) FILTER (s.status = 'abstained') AS abstained,
        count(*) FILTER (s.status = 'budget') AS budget,
        count(*) FILTER (s.status = 'target_error') AS target_error,
        count(*) FILTER (s.status = 'context_error') AS context_error,
        count(*) FILTER (s.status = 'judge_error') AS judge_error,
        count(*) FILTER (s.status = 'scorer_error') AS scorer_error
    FROM latest_scores AS s
    JOIN runs AS r ON r.run_id = s.run_id
    GROUP BY s.run_id, r.suite, r.started_at, s.scorer
) AS s
JOIN runs AS r ON r.run_id = s.run_id;

-- Every score of every item over its runs, with the change against its previous scored run of the same suite, dataset
-- and judge. A run in which the item has no score is passed over: a failure between two scores hides no change. An
-- item whose input or reference was edited, or a scorer that works in another way, begins anew. `comparable` is false,
-- and there is no change, where the claims, or what contexts were judged against, are not those of the previous run.
CREATE VIEW item_history AS
SELECT
    run_id,
    suite,
    dataset,
    retriever,
    version,
    judge,
    scorer,
    item_id,
    started_at,
    status,                                       -- of the score
    score,
    exact,
    scale,
    counted,
    n,
    n_positive,
    previous_run_id,                              -- NULL, like all `previous_…`, for the first and for those not scored
    previous_version,
    previous_score,
    previous_exact,
    CASE WHEN previous_exact IS NOT NULL THEN is_comparable END AS comparable,
    CASE WHEN is_comparable THEN exact - previous_exact END AS change,  -- within -1 and 1
    item_hash,
    claim_set,
    against
FROM (
    SELECT
        *,
        lag(run_id) OVER before AS previous_run_id,
        lag(version) OVER before AS previous_version,
        lag(score) OVER before AS previous_score,
        lag(exact) OVER before AS previous_exact,
        -- Not known where nothing was judged, which is no difference.
        coalesce(claim_set = lag(claim_set) OVER before, true) AND coalesce(against = lag(against) OVER before, true)
            AS is_comparable
    FROM (
        SELECT
            s.run_id, r.suite, r.dataset, r.retriever, r.version, s.judge, s.scorer, s.item_id, r.started_at, s.status,
            s.score, s.exact, s.scale, s.counted, s.n, s.n_positive, s.item_hash, s.claim_set, s.against,
            hash(s.item_hash, s.judge_params, s.prompt_version, s.scorer_version, s.scale, r.duplicates) AS terms
        FROM latest_scores AS s
        JOIN runs AS r ON r.run_id = s.run_id
    )
    WINDOW before AS (
        PARTITION BY suite, dataset, judge, scorer, item_id, terms, exact IS NOT NULL ORDER BY started_at, run_id
    )
);

-- The items that got worse from one run to the next: the rows of `item_history` with a drop.
CREATE VIEW regressions AS
SELECT
    run_id, suite, dataset, retriever, version, judge, scorer, item_id, started_at, status, score, exact, scale,
    previous_run_id, previous_version, previous_score, previous_exact, change, n, n_positive
FROM item_history
WHERE change < 0 AND counted;

-- The claims that the latest complete run of their suite, dataset and judge did not find supported: since when, and how
-- often. Claims of items that are no longer asked, or of references that were edited since, are not among them.
CREATE VIEW missing_claims AS
SELECT
    suite,
    dataset,
    judge,
    scorer,
    item_id,
    claim,
    since_version,                                -- of the first of the unbroken row of runs that miss it
    since_run_id,
    since_at,
    last_version,
    last_run_id,
    last_at,
    runs_missing,                                 -- runs since then; all of them miss it
    runs_missing_ever,
    runs_judged
FROM (
    SELECT
        suite, dataset, judge, scorer, item_id, claim,
        arg_min(version, started_at) FILTER (NOT positive AND started_at > last_found) AS since_version,
        arg_min(run_id, started_at) FILTER (NOT positive AND started_at > last_found) AS since_run_id,
        min(started_at) FILTER (NOT positive AND started_at > last_found) AS since_at,
        arg_max(version, started_at) AS last_version,
        arg_max(run_id, started_at) AS last_run_id,
        max(started_at) AS last_at,
        count(*) FILTER (NOT positive AND started_at > last_found) AS runs_missing,
        count(*) FILTER (NOT positive) AS runs_missing_ever,
        count(*) AS runs_judged
    FROM (
        SELECT
            r.suite, r.dataset, r.judge, v.scorer, v.item_id, v.text AS claim, v.positive, r.started_at, r.run_id,
            r.version,
            coalesce(
                max(CASE WHEN v.positive THEN r.started_at END)
                    OVER (PARTITION BY r.suite, r.dataset, r.judge, v.scorer, v.item_id, v.text),
                '-infinity'
            ) AS last_found
        FROM latest_verdicts AS v
        JOIN runs AS r ON r.run_id = v.run_id
        WHERE v.kind = 'claim' AND v.positive IS NOT NULL
    )
    GROUP BY suite, dataset, judge, scorer, item_id, claim
    HAVING NOT arg_max(positive, started_at)
) AS now_missing
JOIN (
    SELECT suite, dataset, judge, max(started_at) AS latest_at FROM runs WHERE status = 'complete' GROUP BY ALL
) AS latest USING (suite, dataset, judge)
WHERE last_at >= latest_at;

-- One row per version of a retriever and scorer: when it was seen, and where it stood in its last complete run.
CREATE VIEW retriever_versions AS
SELECT
    suite,
    retriever,
    version,
    scorer,
    first_started_at,
    last_started_at,
    runs,
    complete_runs,
    last_run_id,                                  -- the last complete one, of which all that follows is
    judge,
    mean,                                         -- in the scorer's scale
    mean_exact,
    n,
    coverage,
    gate_verdict,
    -- Against the version before it, in the scorer's scale; NULL where that was judged by another judge.
    CASE WHEN judge = lag(judge) OVER before THEN mean - lag(mean) OVER before END AS change
FROM (
    SELECT
        suite, retriever, version, scorer,
        min(started_at) AS first_started_at,
        max(started_at) AS last_started_at,
        count(*) AS runs,
        count(*) FILTER (status = 'complete') AS complete_runs,
        arg_max(run_id, started_at) FILTER (status = 'complete') AS last_run_id,
        arg_max(judge, started_at) FILTER (status = 'complete') AS judge,
        arg_max_null(mean, started_at) FILTER (status = 'complete') AS mean,
        arg_max_null(mean_exact, started_at) FILTER (status = 'complete') AS mean_exact,
        arg_max(n, started_at) FILTER (status = 'complete') AS n,
        arg_max_null(coverage, started_at) FILTER (status = 'complete') AS coverage,
        arg_max_null(gate_verdict, started_at) FILTER (status = 'complete') AS gate_verdict
    FROM score_history
    GROUP BY suite, retriever, version, scorer
)
WINDOW before AS (PARTITION BY suite, retriever, scorer ORDER BY first_started_at, version);

-- What judging took per day (UTC), suite and model: every call, those of superseded attempts and failed ones too.
CREATE VIEW judge_spend AS
SELECT
    make_timestamp(epoch_us(coalesce(c.started_at, r.started_at)))::DATE AS day,
    r.suite,
    c.model,
    count(*) AS calls,
    count(*) FILTER (c.outcome <> 'ok') AS failed,
    CASE WHEN count(c.prompt_tokens) = count(*) THEN sum(c.prompt_tokens)::BIGINT END AS prompt_tokens,
    CASE WHEN count(c.completion_tokens) = count(*) THEN sum(c.completion_tokens)::BIGINT END AS completion_tokens,
    CASE WHEN count(c.cached_tokens) = count(*) THEN sum(c.cached_tokens)::BIGINT END AS cached_tokens,
    CASE WHEN count(c.cost_usd) = count(*) THEN sum(c.cost_usd) END AS cost_usd,  -- NULL when a part is unknown
    sum(c.cost_usd) AS known_cost_usd,            -- of the calls with a known cost; NULL when there are none
    count(*) - count(c.cost_usd) AS unpriced      -- calls whose cost is unknown
FROM judge_calls AS c
JOIN runs AS r ON r.run_id = c.run_id
GROUP BY ALL;
