/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#ifndef EXAMPLES_SPLITTER_ANNOUNCED_H
#define EXAMPLES_SPLITTER_ANNOUNCED_H

/*
 * What control sessions say about connections to come: FTP's commands and replies, and the
 * SDP that SIP carries.  Pure functions of bytes; nothing behind them is read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Somebody will be talked to here. */
struct announced {
	uint8_t addr[16];   /* IPv4 in the first 4 bytes, the others 0 */
	uint16_t port;	    /* 1024 and above */
	uint8_t ip_version; /* 4 or 6; 0: at the address of who says so */
	uint8_t proto;	    /* IPPROTO_TCP or IPPROTO_UDP */
};

/* Most of one packet; what it says beyond is not heard. */
#define ANNOUNCED_MAX 32

/*
 * Of a segment of an FTP control connection: PORT and EPRT by the client, the replies 227
 * (PASV) and 229 (EPSV) by the server, each in a line of which the end is there.  An
 * address that they name comes twice: as it is, and as that of who says so, since many a
 * server behind a NAT names one that its clients know better than to use.  Returns how many.
 */
unsigned int ftp_announced(const void *data, size_t len, bool server,
			   struct announced out[ANNOUNCED_MAX]);

/*
 * Of a SIP message, or of several, or of a part of one that begins with the SDP: every
 * media line's port with the address that holds for it, and RTCP's.  whole: there is no
 * more behind the data, so that its last line needs no end.  Returns how many.
 */
unsigned int sip_announced(const void *data, size_t len, bool whole,
			   struct announced out[ANNOUNCED_MAX]);

#endif
