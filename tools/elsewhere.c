/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * No primary where EAL looks: is it where another user's EAL, or nobody, looks?
 */
#include <dirent.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

#define CHECK "primary"

/* Another user's EAL looks into another folder. */
static bool
in_another_folder(const struct doctor *d)
{
	const char *patterns[] = {"/var/run/dpdk", "/tmp/dpdk", "/run/user/*/dpdk"};
	uint32_t version;
	bool said = false;
	glob_t found;
	size_t i, k;
	pid_t pid;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		const char *pattern = text("%s/%s/config", patterns[i], d->prefix);

		if (glob(pattern, 0, NULL, &found) != 0)
			continue;
		for (k = 0; k < found.gl_pathc; k++) {
			const char *path = found.gl_pathv[k];
			struct stat st;

			if (strncmp(path, d->dir, strlen(d->dir)) == 0 || stat(path, &st) != 0)
				continue;
			if (primary_look(path, &pid, &version) < PRIMARY_STARTING)
				continue;
			said = true;
			say(CHECK, PROBLEM, BAD_PRIMARY,
			    text("run the NF as user %s, or give both the same RUNTIME_DIRECTORY "
				 "and rights",
				 user_name(st.st_uid)),
			    "a primary with this prefix has %s, of user %s; as user %s EAL looks "
			    "into %s",
			    path, user_name(st.st_uid), user_name(geteuid()), d->dir);
		}
		globfree(&found);
	}
	return said;
}

/* What a command line says about EAL. */
struct command {
	bool this_prefix, secondary, shares_nothing;
};

static bool
command_line(const struct doctor *d, pid_t pid, struct command *c)
{
	static const char option[] = "--file-prefix";
	size_t len, at, n;
	char *line = slurp(text("/proc/%d/cmdline", (int)pid), &len);
	bool value = false;

	memset(c, 0, sizeof(*c));
	if (line == NULL)
		return false;
	for (at = 0; at < len; at += n + 1) {
		const char *word = line + at;

		n = strlen(word);
		if (value ? strcmp(word, d->prefix) == 0
			  : strncmp(word, option, strlen(option)) == 0 &&
				    word[strlen(option)] == '=' &&
				    strcmp(word + strlen(option) + 1, d->prefix) == 0)
			c->this_prefix = true;
		value = strcmp(word, option) == 0;
		if (strncmp(word, "--proc-type", 11) == 0)
			c->secondary = strstr(word, "=secondary") != NULL;
		if (strcmp(word, "--in-memory") == 0 || strcmp(word, "--no-shconf") == 0)
			c->shares_nothing = true;
	}
	free(line);
	return c->this_prefix && !c->secondary;
}

/* The shell or sudo that this was started by has the same words in its command line. */
static bool
ancestor(pid_t pid)
{
	pid_t up = getpid();
	char *s, *end;

	while (up > 1 && up != pid) {
		s = slurp(text("/proc/%d/stat", (int)up), NULL);
		end = s != NULL ? strrchr(s, ')') : NULL;
		up = end != NULL && strlen(end) > 4 ? atoi(end + 4) : 0;
		free(s);
	}
	return up == pid;
}

/* The primary may run where its files cannot be seen; its command line can. */
static bool
in_another_process(const struct doctor *d)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	struct command c;
	bool said = false;
	pid_t pid;
	uid_t uid;

	while (proc != NULL && (e = readdir(proc)) != NULL) {
		pid = as_pid(e->d_name);
		if (pid == 0 || ancestor(pid) || !command_line(d, pid, &c))
			continue;
		uid = process_uid(pid);
		if (c.shares_nothing) {
			said = true;
			say(CHECK, PROBLEM, BAD_PRIMARY,
			    "start it without --in-memory and --no-shconf",
			    "process %d (%s) has this prefix, but was started to share nothing",
			    (int)pid, process_name(pid));
		} else if (same_namespace(pid, "mnt") == OTHER) {
			said = true;
			say("namespaces", PROBLEM, BAD_NAMESPACE,
			    text("share %s and the hugetlbfs with it (bind mounts, volumes)",
				 d->dir),
			    "process %d (%s) has this prefix and runs in another mount namespace: "
			    "its files are not to be seen here",
			    (int)pid, process_name(pid));
		} else if (uid != geteuid()) {
			said = true;
			say(CHECK, PROBLEM, BAD_PRIMARY,
			    text("run the NF as user %s, or give both the same RUNTIME_DIRECTORY "
				 "and rights",
				 user_name(uid)),
			    "process %d (%s) of user %s has this prefix; as user %s EAL looks into "
			    "%s",
			    (int)pid, process_name(pid), user_name(uid), user_name(geteuid()),
			    d->dir);
		}
	}
	if (proc != NULL)
		closedir(proc);
	return said;
}

bool
check_elsewhere(const struct doctor *d)
{
	bool said = in_another_folder(d);

	return in_another_process(d) || said;
}
