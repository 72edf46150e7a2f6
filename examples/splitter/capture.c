/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <pcap/pcap.h>

#include <rte_cycles.h>

#include "splitter.h"

/* Room for packet bytes in an mbuf; later segments have a little more. */
#define SEGMENT (RTE_MBUF_DEFAULT_DATAROOM)
/* net_pcap counts the bytes of a packet in 16 bits. */
#define PACKET_MAX 65535

/* ---- looking through a capture before anything is made ------------------------- */

static pcap_t *
open_capture(const char *path)
{
	char err[PCAP_ERRBUF_SIZE];
	struct stat st;
	pcap_t *p;

	if (stat(path, &st) != 0) {
		complain("cannot open capture \"%s\": %s", path, strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		complain("capture \"%s\" is not a file (it is read more than once)", path);
		return NULL;
	}
	if (st.st_size == 0) {
		complain("capture \"%s\" is empty (0 bytes)", path);
		return NULL;
	}
	p = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);
	if (p == NULL)
		complain("cannot read \"%s\" as a capture: %s; pcap and pcapng files are wanted",
			 path, err);
	return p;
}

static int
check_link_type(const char *path, pcap_t *p)
{
	int dlt = pcap_datalink(p);
	const char *name = pcap_datalink_val_to_name(dlt);

	if (dlt == DLT_EN10MB)
		return 0;
	return complain("capture \"%s\" has link type %s (DLT %d); only Ethernet (DLT %d, EN10MB)"
			" can be used",
			path, name != NULL ? name : "unknown", dlt, DLT_EN10MB);
}

static int
count_packet(const char *path, const struct pcap_pkthdr *h, struct capture_info *info)
{
	uint32_t segments = (h->caplen + SEGMENT - 1) / SEGMENT;

	info->packets++;
	if (h->caplen > PACKET_MAX)
		return complain("capture \"%s\": packet %ju has %u bytes, more than %u; record it"
				" without segmentation offload",
				path, (uintmax_t)info->packets, h->caplen, PACKET_MAX);
	if (segments == 0)
		segments = 1;
	info->bytes += h->caplen;
	info->segments += segments;
	if (segments > info->max_segments)
		info->max_segments = segments;
	if (h->ts.tv_usec % 1000 != 0) /* these are ns here */
		info->nano = true;
	return 0;
}

int
capture_check(const char *path, uint64_t first, struct capture_info *info)
{
	pcap_t *p = open_capture(path);
	struct pcap_pkthdr *h;
	const u_char *data;
	int rc;

	memset(info, 0, sizeof(*info));
	if (p == NULL)
		return -1;
	rc = check_link_type(path, p);
	while (rc == 0 && info->packets < first && (rc = pcap_next_ex(p, &h, &data)) == 1)
		rc = count_packet(path, h, info);
	if (rc == PCAP_ERROR && strstr(pcap_geterr(p), "truncated") != NULL)
		complain("capture \"%s\" is cut off in packet %ju (%s); take a whole copy, or keep"
			 " the whole packets: editcap -r \"%s\" NEW 1-%ju",
			 path, (uintmax_t)info->packets + 1, pcap_geterr(p), path,
			 (uintmax_t)info->packets);
	else if (rc == PCAP_ERROR && pcap_geterr(p)[0] != '\0')
		complain("capture \"%s\" cannot be read at packet %ju: %s", path,
			 (uintmax_t)info->packets + 1, pcap_geterr(p));
	else if (rc == PCAP_ERROR_BREAK && info->packets == 0)
		complain("capture \"%s\" is empty (no packets)", path);
	else if (rc == PCAP_ERROR_BREAK)
		rc = 0;
	pcap_close(p);
	return rc == 0 ? 0 : -1;
}

/* ---- time stamps in ns ------------------------------------------------------------ */

struct capture_clock {
	pcap_t *p;
};

struct capture_clock *
capture_clock_open(const char *path)
{
	struct capture_clock *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->p = open_capture(path);
	if (c->p == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

uint64_t
capture_clock_next(struct capture_clock *c)
{
	struct pcap_pkthdr *h;
	const u_char *data;

	if (pcap_next_ex(c->p, &h, &data) != 1)
		return 0;
	return (uint64_t)h->ts.tv_sec * NS_PER_S + (uint64_t)h->ts.tv_usec;
}

void
capture_clock_close(struct capture_clock *c)
{
	if (c == NULL)
		return;
	pcap_close(c->p);
	free(c);
}

/* ---- writing ------------------------------------------------------------------------ */

struct capture_writer {
	pcap_t *p;
	pcap_dumper_t *dump;
	const char *path;
	bool nano;
	uint8_t packet[PACKET_MAX]; /* segments are gathered here */
};

struct capture_writer *
capture_writer_open(const char *path, bool nano)
{
	struct capture_writer *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		complain("no memory for writing \"%s\"", path);
		return NULL;
	}
	w->path = path;
	w->nano = nano;
	w->p = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, 262144,
						    nano ? PCAP_TSTAMP_PRECISION_NANO
							 : PCAP_TSTAMP_PRECISION_MICRO);
	if (w->p != NULL)
		w->dump = pcap_dump_open(w->p, path);
	if (w->dump == NULL) {
		complain("--out: cannot write \"%s\": %s", path, strerror(errno));
		if (w->p != NULL)
			pcap_close(w->p);
		free(w);
		return NULL;
	}
	return w;
}

static int
check_writer(struct capture_writer *w, int bad)
{
	if (!bad)
		return 0;
	return complain("--out: writing \"%s\" failed: %s", w->path, strerror(errno));
}

int
capture_write(struct capture_writer *w, const struct rte_mbuf *m, uint64_t ns)
{
	uint32_t len = RTE_MIN(m->pkt_len, (uint32_t)PACKET_MAX);
	struct pcap_pkthdr h = {.caplen = len, .len = m->pkt_len};
	struct timespec now;

	if (ns == 0) { /* a port without time stamps */
		clock_gettime(CLOCK_REALTIME, &now);
		ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	}
	h.ts.tv_sec = (time_t)(ns / NS_PER_S);
	h.ts.tv_usec = (suseconds_t)(w->nano ? ns % NS_PER_S : ns % NS_PER_S / 1000);
	pcap_dump((u_char *)w->dump, &h, rte_pktmbuf_read(m, 0, len, w->packet));
	return check_writer(w, ferror(pcap_dump_file(w->dump)));
}

int
capture_writer_close(struct capture_writer *w)
{
	int rc;

	if (w == NULL)
		return 0;
	rc = check_writer(w, pcap_dump_flush(w->dump) != 0);
	pcap_dump_close(w->dump);
	pcap_close(w->p);
	free(w);
	return rc;
}
