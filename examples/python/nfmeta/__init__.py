# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The libnfmeta authors
"""NFs in Python.  abi: the shared bytes; link: a queue of a link, by libnfmeta."""

from .abi import *  # noqa: F403
from .link import *  # noqa: F403
