/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

/* What the example programs share: nothing of it is about nfmeta. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "idle.h"

/* Exit statuses of the programs. */
#define EXIT_OK 0
#define EXIT_BAD 1  /* bad input, or something could not be made */
#define EXIT_PEER 3 /* the other side died or left */

/* ---- say.c: one line for people ------------------------------------------- */

/* Name that starts every line; argv[0] without its directories. */
void say_program(const char *argv0);
const char *say_name(void);

/* "program: ...\n" on stderr.  complain() returns -1, for return complain(...). */
__attribute__((format(printf, 1, 2))) int complain(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void note(const char *fmt, ...);
/* What is complained about from now on is in this line of a file; NULL: it is not. */
void say_where(const char *file, unsigned int line);

/* Numbers in options: the whole text, within bounds.  0, or -1 and the line said. */
int parse_u64(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value);
int parse_choice(const char *option, const char *text, const char *const *names, int *index);
/* What getopt_long() returned '?' or ':' for; -1. */
int bad_option(int c, char **argv);

/* ---- stop.c: signals ------------------------------------------------------- */

void stop_install(void); /* SIGINT and SIGTERM */
bool stop_asked(void);
void reload_install(void); /* SIGHUP */
bool reload_asked(void);   /* once per signal */
void drain_install(void);  /* SIGUSR1 */
bool drain_asked(void);	   /* asked for, and not taken back: each signal changes it */

#define IDLE_US 100 /* idle.h: the longest sleep of a loop */

/* ---- ini.c: files of [sections] with "name = value" lines ------------------- */

struct ini {
	const char *path;
	FILE *file;
	char *text;
	size_t size;
	unsigned int line;
	char section[32];
	const char *key, *value; /* until the next call */
};

/* 0, or -1 and the line said; option: who wants the file. */
int ini_open(struct ini *i, const char *option, const char *path);
/* 1: the next line is there; 0: there is none; -1: bad, the line said. */
int ini_next(struct ini *i);
/* "file:line: ..."; -1. */
__attribute__((format(printf, 2, 3))) int ini_bad(const struct ini *i, const char *fmt, ...);
void ini_close(struct ini *i);

/* ---- nearest.c ------------------------------------------------------------- */

/* "; near it: NAME, NAME", or "": those of the names that were meant, perhaps. */
const char *nearest(const char *word, const char *const *names, char *text, size_t size);

/* ---- json.c: a report ------------------------------------------------------ */

struct json {
	FILE *file; /* NULL: no report wanted, all calls do nothing */
	const char *path;
	int depth;
	bool comma;
	bool created; /* the file was not there before */
};

/* Opens the file at once, so that a bad path shows before the work. */
int json_open(struct json *j, const char *path);
void json_object(struct json *j, const char *key);
void json_end(struct json *j);
void json_text(struct json *j, const char *key, const char *value);
void json_number(struct json *j, const char *key, uint64_t value);
void json_real(struct json *j, const char *key, double value);
/* Ends the report; 0, or -1 and the line said. */
int json_close(struct json *j);
/* There is nothing to report: a file that was made is taken away again. */
void json_discard(struct json *j);

/* ---- primary.c: EAL as a primary process, and nothing left of it ----------- */

struct primary_opts {
	const char *file_prefix;
	uint64_t megabytes; /* hugepage memory at most; 0: as needed */
	bool one_process;   /* without hugepages; no other process can attach */
	bool verbose;	    /* EAL's own log on stderr */
	int argc;	    /* more EAL options, of the user */
	char **argv;
};

/* 0, or -1 and the line said. */
int primary_start(const struct primary_opts *o);
/*
 * For the time of taking down.  An NF that was killed inside of DPDK (while it started,
 * most likely) may have left a lock in shared memory, for which DPDK waits for ever.
 * When the time is over, the line is said, the files are removed, and the process ends with
 * this status: all it had left to do was to free memory that ends with it.
 */
void primary_end_within(unsigned int seconds, int status);
/* Ends EAL and removes its hugepage files and runtime directory. */
void primary_end(void);

#endif
