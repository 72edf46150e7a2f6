/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-suricata.h"

/*
 * The plug-in reaches into Suricata's structs, whose layouts change from release to
 * release.  7.0 checks nothing; 8.0 checks that its minor version fits.
 */
void
guard_version(void)
{
	const char *runs = GetProgramVersion(), *built = PACKAGE_VERSION; /* "7.0.10 RELEASE" */
	unsigned int dots = 0;
	size_t i;

	for (i = 0; built[i] != '\0' && built[i] == runs[i] && dots < VERSION_DOTS; i++)
		dots += built[i] == '.';
	if (dots == VERSION_DOTS || (built[i] == '\0' && !isdigit((unsigned char)runs[i])))
		return;
	FatalError("this plug-in was built for Suricata %s, this is Suricata %s: build it against"
		   " the source of this one",
		   built, runs);
}

static void
differs(const char *what)
{
	FatalError("struct %s of this Suricata is not as in the source (" PACKAGE_VERSION
		   ") the plug-in was built against: configure that source with the options that"
		   " suricata --build-info shows",
		   what);
}

/* What Suricata's own functions write must be where this side reads it, and vice versa. */
void
guard_modules(int slot)
{
	if (TmModuleGetById(slot) != &tmm_modules[slot])
		differs("TmModule");
}

static void
guard_packet(void)
{
	static const uint8_t data[60] = {1, 2, 3};
	Packet *p = PacketGetFromAlloc();

	if (p == NULL)
		FatalError("no memory for a packet");
	if (!packet_csums_untouched(p) || p->ReleasePacket != PacketFree ||
	    PacketCopyData(p, data, sizeof(data)) != 0 ||
	    memcmp(GET_PKT_DATA(p), data, sizeof(data)) != 0 ||
	    PacketSetData(p, data, sizeof(data)) != 0 || p->ext_pkt != data ||
	    GET_PKT_LEN(p) != sizeof(data) || (p->flags & PKT_ZERO_COPY) == 0)
		differs("Packet");
	PacketDrop(p, ACTION_DROP, PKT_DROP_REASON_RULES);
	if (p->action != ACTION_DROP || p->drop_reason != PKT_DROP_REASON_RULES)
		differs("Packet");
	PacketFree(p);
}

static void
guard_flow(void)
{
	Flow *f;

	/* Suricata accounts for its hash table, and for flows made in advance. */
	if ((FlowGetMemuse() - (uint64_t)flow_config.hash_size * sizeof(FlowBucket)) %
		    (sizeof(Flow) + FlowStorageSize()) !=
	    0)
		differs("FlowBucket");
	f = FlowAlloc();
	if (f == NULL)
		FatalError("no memory for a flow");
	f->todstbytecnt = 1;
	FlowSwap(f);
	if (f->tosrcbytecnt != 1 || f->todstbytecnt != 0)
		differs("Flow");
	FlowFree(f);
}

void
guard_layout(const ThreadVars *tv, const char *name)
{
	guard_packet();
	guard_flow();
	if (strcmp(tv->name, name) != 0 || tv->tmqh_out != TmqhOutputPacketpool)
		differs("ThreadVars");
}
