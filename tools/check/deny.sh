#!/usr/bin/env bash
# Checks licences, bans and sources of all dependencies (deny.toml), and known vulnerabilities where their database can be reached.
# cargo-deny is installed when it is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# Elsewhere, since the settings in .cargo are for this workspace.
command -v cargo-deny >/dev/null || (cd / && env -u CARGO_TARGET_DIR cargo install --quiet --locked cargo-deny)
cargo deny --log-level error check licenses bans sources
if timeout 120 cargo deny --log-level error fetch db >/dev/null 2>&1; then
    cargo deny --log-level error check advisories
else
    echo "deny.sh: the database of advisories cannot be reached; they are not checked"
fi
