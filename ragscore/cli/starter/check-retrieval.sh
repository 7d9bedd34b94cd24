#!/bin/sh
# For CI: evaluates the retriever and fails the job when the gate does (1), when files are wrong (2) or when it could
# not be evaluated (3). Keep .ragscore/history.duckdb between jobs (a cache or a volume) to have something to compare with.
set -eu
cd "$(dirname "$0")"
ragscore validate suite.yaml
ragscore run suite.yaml
