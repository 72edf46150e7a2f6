/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * The check of a link's handshake: it reads nothing outside the bytes, and what
 * it accepts can be used without looking again.
 *
 * Input: the handshake, and one byte more: bit 0 puts in what this side would
 * publish (versions, mbuf layout), so that the checks behind them are reached;
 * the other bits are the queue.
 */
#include "hidden.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nfmeta_shared_link *s;
	uint32_t queue, i;
	uint8_t *bytes;
	size_t len, j;
	int rc;

	if (size < 1)
		return 0;
	len = size - 1;
	queue = data[len] >> 1;
	bytes = malloc(len); /* of its own, and as large as it is */
	memcpy(bytes, data, len);
	s = (void *)bytes;
	if ((data[len] & 1) != 0 && len >= sizeof(*s)) {
		s->magic = NFMETA_LINK_MAGIC;
		nfmeta__handshake_local(s);
	}
	rc = nfmeta__handshake_check(bytes, len, "demo", queue);
	if (rc != 0) {
		must(rc < 0 && nfmeta_error()[0] != '\0');
		free(bytes);
		return 0;
	}

	must(queue < s->queue_count && s->size <= len && strcmp(s->name, "demo") == 0);
	must(strlen(s->pool_name) < NFMETA_NAME_SIZE && strlen(s->pool_ops) < NFMETA_NAME_SIZE);
	must(s->field.offset + s->field.size <= sizeof(struct rte_mbuf));
	must(s->field.seal_offset + 2u <= sizeof(struct rte_mbuf));
	must(s->flow_carrier <= NFMETA_CARRIER_TABLE && s->flow_ring <= 1048576);
	must(strlen(s->flow_table) < NFMETA_NAME_SIZE);
	for (i = 0; i < s->queue_count; i++) {
		const struct nfmeta_shared_queue *q =
			(void *)(bytes + s->queue_offset + i * s->queue_size);

		must(strlen(q->down) < NFMETA_NAME_SIZE && strlen(q->up) < NFMETA_NAME_SIZE);
		if (s->flow_carrier != 0) {
			must(s->queue_size >= sizeof(*q));
			must(strlen(q->flow_down) < NFMETA_NAME_SIZE);
			must(strlen(q->flow_up) < NFMETA_NAME_SIZE);
		}
		for (j = 0; j < s->queue_size; j++)
			(void)((const volatile uint8_t *)q)[j];
	}
	free(bytes);
	return 0;
}
