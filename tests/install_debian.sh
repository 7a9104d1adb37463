#!/bin/sh
# Installs the Debian packages that some tests need, if they are missing and this user may; else those tests are skipped.
set -eu
missing=
{ command -v initdb || ls -d /usr/lib/postgresql/*/bin; } >/dev/null 2>&1 || missing="postgresql"
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v softhsm2-util >/dev/null 2>&1 || missing="$missing softhsm2"
{ command -v nginx || ls /usr/sbin/nginx; } >/dev/null 2>&1 || missing="$missing nginx-light"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=
elif sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    as_root=none
fi
if [ "$as_root" = none ] || ! command -v apt-get >/dev/null; then
    echo "Tests that need $missing will be skipped: install it to run them." >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
{ $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends $missing; } >/dev/null ||
    echo "Could not install $missing: the tests that need it will be skipped." >&2
