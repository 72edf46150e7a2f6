/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * Any bytes in place of a record: reading never leaves the mbuf and its buffer,
 * and what is believed is well formed and moves as it should.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <nfmeta/nfmeta.h>

/* Input: placement, flags, start, length, shift, then bytes over mbuf or headroom. */
struct head {
	uint8_t placement;
	uint8_t present;
	uint16_t start;
	uint16_t length;
	int16_t shift;
	uint64_t key;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nfmeta_field fields[] = {
		{.placement = NFMETA_PLACE_DYNFIELD, .size = 16, .offset = 96, .seal_offset = 92},
		{.placement = NFMETA_PLACE_DYNFIELD, .size = 32, .offset = 96, .seal_offset = 94},
		{.placement = NFMETA_PLACE_UDATA64, .size = 8, .offset = 120, .seal_offset = 92},
		{.placement = NFMETA_PLACE_HEADROOM, .size = 64, .offset = 0, .seal_offset = 28},
	};
	struct nfmeta_record out, again;
	struct nfmeta_field f;
	struct rte_mbuf *m;
	struct head h;
	uint8_t *buf;
	uint32_t n;

	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	data += sizeof(h);
	size -= sizeof(h);
	f = fields[h.placement % RTE_DIM(fields)];
	f.flag = UINT64_C(1) << 23;
	f.key = h.key;

	m = aligned_alloc(64, sizeof(*m));
	buf = aligned_alloc(64, 128); /* no more than the headroom may be read */
	assert(m != NULL && buf != NULL);
	memset(m, 0, sizeof(*m));
	memset(buf, 0, 128);
	if (f.placement == NFMETA_PLACE_HEADROOM)
		memcpy(buf, data, RTE_MIN(size, 128u));
	else
		memcpy((uint8_t *)m + 92, data, RTE_MIN(size, 36u));
	m->buf_addr = buf;
	m->data_off = h.start;
	m->pkt_len = h.length;
	m->data_len = h.length;
	m->nb_segs = 1;
	rte_mbuf_refcnt_set(m, 1);
	if (h.present & 1)
		m->ol_flags |= f.flag;

	n = nfmeta_record_get(&f, m, &out);
	assert(n == out.size && (n == 0 || n == 8 || n == 16 || n == 32 || n == 64) && n <= f.size);
	assert((n != 0) == (nfmeta_record_peek(&f, m) != NULL));
	if (n != 0) {
		assert(out.abi == NFMETA_ABI_MAJOR && (h.present & 1));
		/* moved: in step, or gone */
		m->data_off = (uint16_t)(m->data_off + h.shift);
		m->pkt_len -= (uint32_t)h.shift;
		if (nfmeta_record_shift(&f, m, h.shift)) {
			assert(nfmeta_record_get(&f, m, &again) == n);
			if (n >= 16 && out.l4_off != NFMETA_OFF_NONE)
				assert(again.l4_off == out.l4_off - h.shift);
			assert(again.flow_id == out.flow_id);
		} else {
			assert(nfmeta_record_peek(&f, m) == NULL);
		}
	}
	/* stamping always makes a readable one, if there is room */
	nfmeta_record_init(&out);
	out.flow_id = 1;
	if (nfmeta_record_set(&f, m, &out))
		assert(nfmeta_record_get(&f, m, &again) == f.size && again.flow_id == 1);
	else
		assert(f.placement == NFMETA_PLACE_HEADROOM && m->data_off < NFMETA_HEADROOM_ROOM);
	free(buf);
	free(m);
	return 0;
}
