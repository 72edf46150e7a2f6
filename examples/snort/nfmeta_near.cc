/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */

/*
 * A plug-in for Snort 3: what Snort has of a flow is in the cache before the flow's packet is
 * decoded.
 *
 * Snort finds the flow of every packet by its addresses, and where there are many flows it
 * waits for memory then: for the node of its hash table, the flow, the session. The DAQ
 * module knows the flow from the record, several packets ahead. So this tells it once, for
 * each new flow, where these lie. In snort.lua: nfmeta_near = { }
 */

#include <daq.h>

#include "flow/flow.h"
#include "framework/data_bus.h"
#include "framework/inspector.h"
#include "framework/module.h"
#include "protocols/packet.h"
#include "pub_sub/intrinsic_event_ids.h"

#include "nfmeta_slot.h"

using namespace snort;

static const char near_name[] = "nfmeta_near";
static const char near_help[] = "fetch flows before their packets (by the DAQ's flow id)";

/* The node of the hash table lies before the key; a session's first part is what is used. */
#define NODE_BYTES 64
#define KEY_BYTES 64
#define SESSION_BYTES 384

struct NearStats
{
	PegCount flows;
};

static THREAD_LOCAL NearStats stats;

static const PegInfo pegs[] = {
	{CountType::SUM, "flows", "flows that are fetched before their packets"},
	{CountType::END, nullptr, nullptr},
};

class NearHandler : public DataHandler
{
public:
	NearHandler() : DataHandler(near_name) { }

	void handle(DataEvent &event, Flow *flow) override
	{
		const Packet *p = event.get_packet();
		nfmeta_daq_near *near;

		if (flow == nullptr || p == nullptr || p->daq_msg == nullptr ||
		    daq_msg_get_type(p->daq_msg) != DAQ_MSG_TYPE_PACKET)
			return;
		near = (nfmeta_daq_near *)daq_msg_get_meta(p->daq_msg, NFMETA_DAQ_NEAR_SLOT);
		if (near == nullptr)
			return;
		near[0] = {flow, sizeof(Flow)};
		near[1] = {(const char *)flow->key - NODE_BYTES, NODE_BYTES + KEY_BYTES};
		near[2] = {flow->session, SESSION_BYTES};
		stats.flows++;
	}
};

class NearModule : public Module
{
public:
	NearModule() : Module(near_name, near_help) { }

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

class NearInspector : public Inspector
{
public:
	bool configure(SnortConfig *) override
	{
		DataBus::subscribe_network(intrinsic_pub_key, IntrinsicEventIds::FLOW_STATE_SETUP,
					   new NearHandler);
		return true;
	}
};

static Module *module_new()
{
	return new NearModule;
}

static void module_delete(Module *m)
{
	delete m;
}

static Inspector *inspector_new(Module *)
{
	return new NearInspector;
}

static void inspector_delete(Inspector *i)
{
	delete i;
}

static const InspectApi api = {
	{PT_INSPECTOR, sizeof(InspectApi), INSAPI_VERSION, 0, PLUGIN_DEFAULT, API_OPTIONS, near_name,
	 near_help, module_new, module_delete},
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
