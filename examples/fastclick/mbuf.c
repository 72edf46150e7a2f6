/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <string.h>

#include "nfmeta-fastclick.h"

struct rte_mbuf *
fc_copy(struct rte_mempool *pool, const void *data, uint32_t len)
{
	struct rte_mbuf *head = NULL, *last = NULL, *m;
	const uint8_t *from = data;
	uint32_t room;

	do {
		m = rte_pktmbuf_alloc(pool);
		if (m == NULL || (head != NULL && head->nb_segs == UINT16_MAX)) {
			rte_pktmbuf_free(m);
			rte_pktmbuf_free(head);
			return NULL;
		}
		if (last != NULL)
			m->data_off = 0; /* headroom is the first one's matter */
		room = RTE_MIN(len, (uint32_t)rte_pktmbuf_tailroom(m));
		memcpy(rte_pktmbuf_mtod(m, void *), from, room);
		m->data_len = (uint16_t)room;
		from += room;
		len -= room;
		if (last == NULL) {
			head = m;
			head->pkt_len = room;
		} else {
			last->next = m;
			head->nb_segs++;
			head->pkt_len += room;
		}
		last = m;
	} while (len > 0);
	return head;
}
