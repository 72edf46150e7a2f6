/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */

/*
 * Sends a capture out of an interface, again and again.  For benchmarks over AF_PACKET,
 * where nothing holds a sender back: it has to be faster than the one that receives,
 * which must lose nothing all the same.  So it looks at what comes out behind an inline
 * receiver, or sends what fits into the ring and waits until the receiver sleeps.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BATCH 32
#define SLEEP_NS 25000000  /* longer than the kernel keeps a block that is not full */
#define STUCK_NS 500000000 /* nothing more came out for so long: it is lost */

struct pcap_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, sigfigs, snaplen, linktype;
};

struct pcap_packet {
	uint32_t sec, usec, caplen, len;
};

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The packets of a capture; they stay mapped. */
static struct iovec *
load(const char *path, size_t *count)
{
	struct pcap_packet head;
	struct iovec *out = NULL;
	size_t at, room = 0, n = 0;
	struct stat st;
	uint32_t magic;
	char *data;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		err(1, "cannot open \"%s\"", path);
	if ((size_t)st.st_size <= sizeof(struct pcap_header))
		errx(1, "\"%s\" has no packets", path);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (data == MAP_FAILED)
		err(1, "cannot map \"%s\"", path);
	close(fd);
	memcpy(&magic, data, sizeof(magic));
	if (magic != 0xa1b2c3d4)
		errx(1, "\"%s\" is not a pcap of this byte order with microseconds", path);
	for (at = sizeof(struct pcap_header); at + sizeof(head) <= (size_t)st.st_size;
	     at += sizeof(head) + head.caplen) {
		memcpy(&head, data + at, sizeof(head));
		if (at + sizeof(head) + head.caplen > (size_t)st.st_size)
			errx(1, "\"%s\" is cut off in packet %zu", path, n + 1);
		if (n == room) {
			room = room ? 2 * room : 65536;
			out = realloc(out, room * sizeof(*out));
			if (out == NULL)
				errx(1, "no memory for %zu packets", room);
		}
		out[n++] = (struct iovec){data + at + sizeof(head), head.caplen};
	}
	*count = n;
	return out;
}

/* A socket that sends and does not receive. */
static int
open_interface(const char *name)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET};
	int fd, one = 1;

	to.sll_ifindex = (int)if_nametoindex(name);
	if (to.sll_ifindex == 0)
		err(1, "there is no interface \"%s\"", name);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		err(1, "cannot open interface \"%s\"", name);
	if (setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) != 0)
		err(1, "PACKET_QDISC_BYPASS on \"%s\"", name);
	return fd;
}

static int
open_counter(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/rx_packets", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(1, "cannot open %s", path);
	return fd;
}

static uint64_t
read_counter(int fd)
{
	char text[64] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		err(1, "cannot read a counter");
	return strtoull(text, NULL, 10);
}

/* Waits until no more than "window" of what was sent are on their way; false: they are lost */
static int
wait_for_room(int counter, uint64_t base, uint64_t sent, uint64_t window)
{
	uint64_t back = read_counter(counter) - base, last, since;

	if (sent - back <= window)
		return 1;
	for (since = now_ns(); sent - back > window;) {
		last = back;
		back = read_counter(counter) - base;
		if (back != last)
			since = now_ns();
		else if (now_ns() - since > STUCK_NS)
			return 0;
	}
	return 1;
}

/* Opens /proc/TID/NAME: a thread has one, too. */
static int
open_proc(uint64_t tid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%ju/%s", (uintmax_t)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(1, "thread %ju: cannot open %s", (uintmax_t)tid, path);
	return fd;
}

/* Waits until a thread has slept for a while, without having run in between. */
static void
wait_for_sleep(int stat, int schedstat)
{
	char text[256], *state;
	uint64_t ran, before = 0, since = now_ns();
	ssize_t n;

	while (now_ns() - since < SLEEP_NS) {
		n = pread(stat, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		state = strrchr(text, ')');
		if (state == NULL)
			errx(1, "the thread that receives has ended");
		ran = read_counter(schedstat);
		if (ran != before || state[2] != 'S')
			since = now_ns();
		before = ran;
		usleep(1000);
	}
}

static uint64_t
number(const char *what, const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0')
		errx(1, "%s \"%s\": a number is wanted", what, text);
	return v;
}

int
main(int argc, char **argv)
{
	static struct mmsghdr batch[BATCH];
	uint64_t count, most, sent = 0, base = 0, start, lost = 0, left;
	int fd, done, counter = -1, stat = -1, schedstat = -1;
	struct iovec *packets;
	size_t n, at = 0, i;
	unsigned int k;

	if (argc != 7 || (strcmp(argv[4], "behind") != 0 && strcmp(argv[4], "asleep") != 0)) {
		fprintf(stderr,
			"usage: send INTERFACE CAPTURE PACKETS behind OTHER WINDOW\n"
			"       send INTERFACE CAPTURE PACKETS asleep THREAD BURST\n"
			"Sends so many packets, from the beginning again after the last one.\n"
			"  behind  never more than WINDOW that have not come out of interface "
			"OTHER\n"
			"  asleep  BURST of them, then waits until THREAD sleeps, then goes on\n");
		return 1;
	}
	count = number("PACKETS", argv[3]);
	most = left = number("WINDOW or BURST", argv[6]);
	packets = load(argv[2], &n);
	if (n == 0)
		errx(1, "\"%s\" has no packets", argv[2]);
	fd = open_interface(argv[1]);
	if (strcmp(argv[4], "behind") == 0) {
		counter = open_counter(argv[5]);
		base = read_counter(counter);
	} else {
		stat = open_proc(number("THREAD", argv[5]), "stat");
		schedstat = open_proc(number("THREAD", argv[5]), "schedstat");
	}
	for (i = 0; i < BATCH; i++)
		batch[i].msg_hdr.msg_iovlen = 1;
	start = now_ns();
	while (sent < count) {
		for (k = 0; k < BATCH && sent + k < count; k++) {
			batch[k].msg_hdr.msg_iov = &packets[at];
			at = at + 1 == n ? 0 : at + 1;
		}
		if (counter >= 0 && !wait_for_room(counter, base, sent + k, most)) {
			/* count them as lost, and go on with a new window */
			lost += sent - (read_counter(counter) - base);
			base = read_counter(counter) - sent;
		} else if (counter < 0 && left < k) {
			wait_for_sleep(stat, schedstat);
			left = most;
		}
		for (i = 0; i < k; i += (size_t)done) {
			done = sendmmsg(fd, batch + i, k - (unsigned int)i, 0);
			if (done <= 0)
				err(1, "sending to \"%s\"", argv[1]);
		}
		sent += k;
		left -= k;
	}
	printf("{\"packets\": %ju, \"seconds\": %.6f, \"lost\": %ju}\n", (uintmax_t)sent,
	       (double)(now_ns() - start) / 1e9, (uintmax_t)lost);
	return 0;
}
