/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <signal.h>

#include "common.h"

static volatile sig_atomic_t stopped;
static volatile sig_atomic_t reload;

static void
on_hangup(int sig)
{
	(void)sig;
	reload = 1;
}

void
reload_install(void)
{
	struct sigaction sa = {.sa_handler = on_hangup, .sa_flags = SA_RESTART};

	sigaction(SIGHUP, &sa, NULL);
}

bool
reload_asked(void)
{
	if (reload == 0)
		return false;
	reload = 0;
	return true;
}

static volatile sig_atomic_t drain;

static void
on_user(int sig)
{
	(void)sig;
	drain = !drain;
}

void
drain_install(void)
{
	struct sigaction sa = {.sa_handler = on_user, .sa_flags = SA_RESTART};

	sigaction(SIGUSR1, &sa, NULL);
}

bool
drain_asked(void)
{
	return drain != 0;
}

static void
on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

void
stop_install(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sa.sa_handler = SIG_IGN; /* a reader that went away shows as a failed write */
	sigaction(SIGPIPE, &sa, NULL);
}

bool
stop_asked(void)
{
	return stopped != 0;
}
