/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The check of a message of flow state: it reads nothing outside the bytes, and
 * what it accepts can be read without looking again.
 *
 * Input: one byte, then the bytes of a message.  Bit 0 of the first one is the
 * direction; bit 1 puts in magic and ABI, so that the checks behind are reached.
 */
#include "hidden.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With as many bytes as there are, and not one more. */
static int
check(const uint8_t *data, size_t len, int up)
{
	uint8_t *bytes = malloc(len);
	int rc;

	memcpy(bytes, data, len);
	rc = nfmeta__flow_check(bytes, len, up);
	free(bytes);
	return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[1 << 16];
	struct nfmeta_flow_batch b;
	size_t len, total;
	int up, rc;

	if (size < 1 || size > sizeof(bytes))
		return 0;
	up = data[0] & 1;
	len = size - 1;
	memcpy(bytes, data + 1, len);
	memset(&b, 0, sizeof(b));
	if ((data[0] & 2) != 0 && len >= sizeof(b)) {
		memcpy(bytes, &(uint32_t){NFMETA_FLOW_MAGIC}, 4);
		bytes[4] = NFMETA_ABI_MAJOR;
	}
	memcpy(&b, bytes, RTE_MIN(len, sizeof(b)));
	total = sizeof(b) + (size_t)b.count * b.entry_size;
	rc = check(bytes, len, up);
	must(rc > 0 || rc == 0 || rc == -EAGAIN || rc == -NFMETA_EMESSAGE);
	if (rc == -NFMETA_EMESSAGE) {
		must(len >= sizeof(b));
		must(check(bytes, sizeof(b), up) == rc); /* the header says it all */
		return 0;
	}
	if (len < sizeof(b)) {
		must(rc == -EAGAIN);
		return 0;
	}
	must(b.magic == NFMETA_FLOW_MAGIC && b.abi == NFMETA_ABI_MAJOR);
	must(total <= NFMETA_FLOW_MESSAGE_BYTES && b.entry_size % 8 == 0);
	must(b.count == 0 || b.entry_size != 0);
	must((rc == -EAGAIN) == (len < total));
	if (rc == -EAGAIN)
		return 0;
	must(total == sizeof(b) || check(bytes, total - 1, up) == -EAGAIN);
	must(check(bytes, total, up) == rc);
	if (rc == 0) {
		must((b.type & NFMETA_MSG_OPTIONAL) != 0);
		return 0;
	}
	must((size_t)rc == total && (b.type & NFMETA_MSG_OPTIONAL) == 0);
	must((b.type >= NFMETA_MSG_VERDICT) == up && b.type <= NFMETA_MSG_ACK);
	must(check(bytes, len, !up) == -NFMETA_EMESSAGE);
	must(b.count == 0 || b.entry_size >= natural(b.type));
	must(b.type == NFMETA_MSG_SNAPSHOT ||
	     (b.flags & (NFMETA_MSG_FIRST | NFMETA_MSG_LAST)) == 0);
	must((b.count == 0) == (b.type == NFMETA_MSG_RESET || b.type == NFMETA_MSG_HEARTBEAT) ||
	     b.type == NFMETA_MSG_SNAPSHOT);
	return 0;
}
