#!/bin/sh
# Sets up the server of the rounds: read it, then run it as root on the server. Run it again whenever
# a party has given you its public key (NAME/NAME.pub): existing files and users do not change.
set -eu
umask 022

PARTIES="@PARTIES@"
HOST="@HOST@"
PORT="@PORT@"
GROUP=hushtable                     # members can use SFTP in $PLACE, and nothing else
PLACE=/srv/hushtable
KEYS=/etc/ssh/hushtable_keys
DROP_IN=/etc/ssh/sshd_config.d/hushtable.conf
HOST_KEY=/etc/ssh/ssh_host_ed25519_key.pub

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
fail() { echo "server.sh: $*. Nothing was changed." >&2; exit 1; }

# --- checks before anything is changed -------------------------------------------------------------
[ "$(id -u)" = 0 ] || fail "needs root: run it with sudo, or as root"
sshd=$(command -v sshd || command -v /usr/sbin/sshd) ||
    fail "no OpenSSH server here: install it (apt-get install openssh-server), then run this again"
grep -Eiq '^[[:space:]]*Include[[:space:]]+"?/etc/ssh/sshd_config.d/\*.conf' /etc/ssh/sshd_config ||
    fail "/etc/ssh/sshd_config reads no drop-ins: put 'Include /etc/ssh/sshd_config.d/*.conf' on its first line"
[ -f "$HOST_KEY" ] || fail "the server has no key $HOST_KEY: make its keys with ssh-keygen -A"
if [ -e "$PLACE/parties" ] && [ "$(cat "$PLACE/parties")" != "$PARTIES" ]; then
    fail "$PLACE serves another kit ($(cat "$PLACE/parties")): use its files, or another server"
fi
if [ -e "$PLACE" ] && [ ! -e "$PLACE/parties" ] && [ -n "$(ls -A "$PLACE")" ]; then
    fail "$PLACE has files that are not from a kit: move them elsewhere, then run this again"
fi
for name in $PARTIES; do
    if home=$(getent passwd "$name" | cut -d: -f6) && [ -n "$home" ] &&
        [ "$home" != "/var/lib/hushtable/$name" ]; then
        fail "there is already a user $name for another purpose: make a kit with other names"
    fi
    pub="$here/$name/$name.pub"
    if [ -e "$pub" ] && ! ssh-keygen -l -f "$pub" >/dev/null 2>&1; then
        fail "$pub is not a public SSH key: ask $name for the file that its install.sh wrote"
    fi
done

# --- users and folders ------------------------------------------------------------------------------
getent group "$GROUP" >/dev/null || groupadd --system "$GROUP"
for name in $PARTIES; do
    # '*' is a password that nothing matches; an account without a password would count as locked.
    getent passwd "$name" >/dev/null || useradd --system --user-group --password '*' \
        --no-create-home --home-dir "/var/lib/hushtable/$name" --shell /usr/sbin/nologin "$name"
    usermod -a -G "$GROUP" "$name"
done

install -d -o root -g root -m 755 "$PLACE" "$KEYS"     # only root may own and change the SFTP root
for folder in meeting round; do
    install -d -o root -g "$GROUP" -m 3770 "$PLACE/$folder"
done
for name in $PARTIES; do
    install -d -o "$name" -g "$GROUP" -m 2750 "$PLACE/round/$name"
    # Readable for sshd, which reads it as the user; only root can change it.
    if [ -e "$here/$name/$name.pub" ]; then
        install -o root -g root -m 644 "$here/$name/$name.pub" "$KEYS/$name"
    fi
done
echo "$PARTIES" > "$PLACE/parties"

# --- sshd --------------------------------------------------------------------------------------------
if ! cmp -s "$here/sshd_hushtable.conf" "$DROP_IN"; then
    install -o root -g root -m 644 "$here/sshd_hushtable.conf" "$DROP_IN"
    if ! "$sshd" -t; then
        rm "$DROP_IN"
        echo "server.sh: sshd refuses $DROP_IN, which was removed again: see the line above" >&2
        exit 1
    fi
    if [ -d /run/systemd/system ]; then
        systemctl reload ssh 2>/dev/null || systemctl reload sshd
    elif [ -f /run/sshd.pid ]; then
        kill -HUP "$(cat /run/sshd.pid)"
    else
        echo "Start sshd, or make it reload its configuration."
    fi
fi

# --- what the parties need to know -------------------------------------------------------------------
name_of_host=$HOST
[ "$PORT" = 22 ] || name_of_host="[$HOST]:$PORT"
for name in $PARTIES; do
    echo "$name_of_host $(cut -d' ' -f1,2 "$HOST_KEY")" > "$here/$name/known_hosts"
    [ -e "$KEYS/$name" ] || echo "Waiting for the public key of $name, as $name/$name.pub. Then run this again."
done
echo "The server's key, which is now in known_hosts of each party:"
ssh-keygen -l -f "$HOST_KEY"
