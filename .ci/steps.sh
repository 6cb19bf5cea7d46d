# Steps of a run, each timed; sourced by .ci/run and .ci/nightly.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
TIMES="" RUNNING=""

step() {
    local start=$SECONDS
    RUNNING=$*
    printf '==> %s\n' "$RUNNING"
    "$@"
    TIMES+="$(printf '%5d s  %s' $((SECONDS - start)) "$RUNNING")"$'\n'
    RUNNING=""
}

# Also where a step failed, or the run was interrupted.
trap 'printf "%s%s\n" "$TIMES" "${RUNNING:+Not passed: failed or interrupted in }${RUNNING:-All passed in $SECONDS s.}"' EXIT
