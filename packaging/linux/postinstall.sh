#!/bin/sh
# Creates the user of the services. No service is enabled or started.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers carronade.conf
elif ! getent passwd carronade >/dev/null 2>&1; then
  useradd --system --user-group --home-dir /var/lib/carronade --no-create-home \
    --shell /usr/sbin/nologin carronade
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
