#!/bin/sh
# Announce a deploy with nothing but curl. Set PREFECT_API_URL, RETRIEVER, VERSION and DEPLOY_ID.
# The server answers 204 whether or not anything listens; `ragscore notify` also says whether a flow run was triggered.
set -eu
# The same deploy, the same event: a UUID made from its id.
EVENT_ID=$(printf %s "$DEPLOY_ID" | sha256sum | sed -E 's/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/\1-\2-\3-\4-\5/')
NOW=$(date -u +%Y-%m-%dT%H:%M:%SZ)
curl -fsS -X POST "$PREFECT_API_URL/events" -H 'content-type: application/json' --data @- <<EOF
[{
  "id": "${EVENT_ID}",
  "occurred": "${NOW}",
  "event": "retriever.deployed",
  "resource": {"prefect.resource.id": "retriever.${RETRIEVER}", "prefect.resource.name": "${RETRIEVER}"},
  "payload": {"retriever": "${RETRIEVER}", "version": "${VERSION}", "deploy_id": "${DEPLOY_ID}"}
}]
EOF
