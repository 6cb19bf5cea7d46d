# Steps of a run, each timed; sourced by .ci/run and .ci/nightly.

TIMES=()

# Runs a command; prints its time after it, and again in the summary.
step() {
    local start=$SECONDS
    printf '==> %s\n' "$*"
    "$@"
    TIMES+=("$(printf '%5d s  %s' "$((SECONDS - start))" "$*")")
    printf '<== %s: %d s\n' "$*" "$((SECONDS - start))"
}

# Runs two commands at the same time; prints the output of each in one piece.
both() {
    local start=$SECONDS log failed=0
    log=$(mktemp)
    printf '==> %s, beside %s\n' "$1" "$2"
    $2 >"$log" 2>&1 &
    $1 || failed=1
    wait $! || failed=1
    cat "$log"
    rm "$log"
    TIMES+=("$(printf '%5d s  %s' "$((SECONDS - start))" "$1, beside $2")")
    printf '<== %s, beside %s: %d s\n' "$1" "$2" "$((SECONDS - start))"
    return "$failed"
}

summary() {
    printf '%s\n' "${TIMES[@]}"
    printf 'All passed in %d s.\n' "$SECONDS"
}
