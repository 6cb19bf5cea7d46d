#!/bin/sh
# Sets up @NAME@ on its machine: read it, then run it as root. If you run it again, it keeps existing
# files: it never overwrites keys, tables, policies or settings.
set -eu
umask 077

NAME="@NAME@"
PLACE=/var/lib/hushtable/$NAME      # keys, book, policy, rows and results: back it up
UNIT=hushtable-round-$NAME

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
fail() { echo "install.sh: $*. Nothing was changed." >&2; exit 1; }
as_party() { su -s /bin/sh - "$NAME" -c "$1"; }

# --- checks before anything is changed -------------------------------------------------------------
[ "$(id -u)" = 0 ] || fail "needs root: run it with sudo, or as root"
program=$(command -v hushtable) || fail "there is no hushtable on the path: install it for all users, for example in /usr/local/bin"
[ -e "$here/known_hosts" ] || [ -e "$PLACE/.ssh/known_hosts" ] ||
    fail "$here/known_hosts, which names the server's key, is missing: server.sh writes it on the server"
if home=$(getent passwd "$NAME" | cut -d: -f6) && [ -n "$home" ] && [ "$home" != "$PLACE" ]; then
    fail "there is already a user $NAME for another purpose: make a kit with another name"
fi

# --- user, folder, files ----------------------------------------------------------------------------
getent passwd "$NAME" >/dev/null || useradd --system --user-group --password '*' \
    --no-create-home --home-dir "$PLACE" --shell /usr/sbin/nologin "$NAME"
install -d -m 755 /var/lib/hushtable
install -d -o "$NAME" -g "$NAME" -m 700 "$PLACE" "$PLACE/.ssh"
for file in "$here"/*.toml "$here"/*.csv; do
    [ -e "$file" ] || continue
    [ -e "$PLACE/${file##*/}" ] || install -o "$NAME" -g "$NAME" -m 600 "$file" "$PLACE/"
done
[ -e "$PLACE/.ssh/known_hosts" ] ||
    install -o "$NAME" -g "$NAME" -m 600 "$here/known_hosts" "$PLACE/.ssh/"

# --- keys: for the server, and for the rounds --------------------------------------------------------
if ! as_party "hushtable --version" >/dev/null; then
    echo "install.sh: $NAME cannot run hushtable: install it for all users (or: ln -s $program /usr/local/bin/), then run this again" >&2
    exit 1
fi
[ -e "$PLACE/.ssh/id_ed25519" ] ||
    as_party "ssh-keygen -q -t ed25519 -N '' -C $NAME -f .ssh/id_ed25519"
install -m 644 "$PLACE/.ssh/id_ed25519.pub" "$here/$NAME.pub"
[ -e "$PLACE/$NAME.card" ] || as_party "hushtable round keygen $NAME@KEYGEN@"

# --- timer -------------------------------------------------------------------------------------------
sed "s|^ExecStart=hushtable |ExecStart=$program |" "$here/$UNIT.service" > "$here/.unit"
install -m 644 "$here/.unit" "/etc/systemd/system/$UNIT.service"
rm "$here/.unit"
install -m 644 "$here/$UNIT.timer" "/etc/systemd/system/"
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl enable --quiet --now "$UNIT.timer"
else
    echo "systemd is not running here: put the line in $here/crontab into cron."
fi
echo "$NAME is set up in $PLACE. Give its public key to the server's administrator: $here/$NAME.pub"
