#!/bin/sh
# Evaluate a suite in any CI: exits with the gate's code, and leaves retrieval.md and retrieval.xml where there is a
# baseline to compare with. Usage: gate.sh suite.yaml [option of `ragscore run` ...]
set -u
rm -f retrieval.md retrieval.xml
ragscore run "$@"
code=$?
case $code in
    0 | 1 | 4)
        # Without a baseline yet there is nothing to compare, and nothing is left.
        ragscore compare baseline last --markdown --junit retrieval.xml >retrieval.md 2>/dev/null || rm -f retrieval.md
        ;;
esac
exit $code
