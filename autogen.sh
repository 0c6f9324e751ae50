#!/bin/sh
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")" && exec autoreconf --force --install
