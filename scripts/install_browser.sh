#!/bin/sh
# The browser that the report is tested in. Debian and its relatives; elsewhere install Chromium and its driver by hand.
set -eu
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
  exit 0
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver
