/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */

/*
 * A plug-in for Snort 3: a flow ends when the upfront NF says so.
 *
 * The DAQ module hands on every DELETE as an EOF message. Snort counts it, publishes it, and
 * leaves the flow to its own time-outs; this takes it, finds the flow and releases it, as if
 * it had timed out. In snort.lua: nfmeta_eof = { }
 */

#include <netinet/in.h>

#include <daq.h>

#include "framework/data_bus.h"
#include "framework/inspector.h"
#include "framework/module.h"
#include "protocols/packet.h"

#include "flow/prune_stats.h"
#include "pub_sub/daq_message_event.h"
#include "pub_sub/intrinsic_event_ids.h"
#include "sfip/sf_ip.h"
#include "stream/stream.h"

using namespace snort;

static const char eof_name[] = "nfmeta_eof";
static const char eof_help[] = "end flows when the upfront NF says so (EOF messages of the DAQ)";

struct EofStats
{
	PegCount messages;
	PegCount deleted;
	PegCount unknown;
};

static THREAD_LOCAL EofStats stats;

static const PegInfo pegs[] = {
	{CountType::SUM, "messages", "EOF messages"},
	{CountType::SUM, "deleted", "flows that were there and ended"},
	{CountType::SUM, "unknown", "EOF messages of flows that Snort did not have any more"},
	{CountType::END, nullptr, nullptr},
};

static PktType type_of(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return PktType::TCP;
	case IPPROTO_UDP:
		return PktType::UDP;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return PktType::ICMP;
	default:
		return PktType::IP;
	}
}

static Flow *find(const DAQ_FlowStats_t *s)
{
	SfIp initiator, responder;

	/* IPv4-mapped addresses are IPv4 for SfIp */
	initiator.set(s->initiator_ip);
	responder.set(s->responder_ip);
	return Stream::get_flow(type_of(s->protocol), (IpProtocol)s->protocol, &initiator,
				ntohs(s->initiator_port), &responder, ntohs(s->responder_port),
				s->vlan_tag, 0, s->address_space_id,
#ifndef DISABLE_TENANT_ID
				s->tenant_id,
#endif
				(s->flags & DAQ_FS_FLAG_SIGNIFICANT_GROUPS) != 0, s->ingress_group,
				s->egress_group);
}

class EofHandler : public DataHandler
{
public:
	EofHandler() : DataHandler(eof_name) { }

	void handle(DataEvent &event, Flow *) override
	{
		auto &e = static_cast<DaqMessageEvent &>(event);
		Flow *flow;

		if (e.get_header_length() != sizeof(DAQ_FlowStats_t))
			return;
		stats.messages++;
		flow = find(static_cast<const DAQ_FlowStats_t *>(e.get_header()));
		if (flow != nullptr) {
			Stream::delete_flow(flow, PruneReason::END_OF_FLOW);
			stats.deleted++;
		} else {
			stats.unknown++;
		}
	}
};

class EofModule : public Module
{
public:
	EofModule() : Module(eof_name, eof_help) { }

	const PegInfo *get_pegs() const override
	{
		return pegs;
	}

	PegCount *get_counts() const override
	{
		return (PegCount *)&stats;
	}

	Usage get_usage() const override
	{
		return GLOBAL;
	}
};

class EofInspector : public Inspector
{
public:
	bool configure(SnortConfig *sc) override
	{
		DataBus::subscribe_global(intrinsic_pub_key, IntrinsicEventIds::DAQ_EOF_MSG,
					  new EofHandler, *sc);
		return true;
	}
};

static Module *module_new()
{
	return new EofModule;
}

static void module_delete(Module *m)
{
	delete m;
}

static Inspector *inspector_new(Module *)
{
	return new EofInspector;
}

static void inspector_delete(Inspector *i)
{
	delete i;
}

static const InspectApi api = {
	{PT_INSPECTOR, sizeof(InspectApi), INSAPI_VERSION, 0, PLUGIN_DEFAULT, API_OPTIONS, eof_name,
	 eof_help, module_new, module_delete},
	IT_PASSIVE,
	PROTO_BIT__NONE,
	nullptr, // buffers
	nullptr, // service
	nullptr, // pinit
	nullptr, // pterm
	nullptr, // tinit
	nullptr, // tterm
	inspector_new,
	inspector_delete,
	nullptr, // ssn
	nullptr, // reset
};

extern "C"
{
__attribute__((visibility("default"))) const BaseApi *snort_plugins[] = {&api.base, nullptr};
}
