/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include "nfmeta-suricata.h"

#define EXPORT __attribute__((visibility("default")))

static int receive_slot, decode_slot;

/* ---- threads ---------------------------------------------------------------- */

static void
append(ThreadVars *tv, TmModule *module, const void *data)
{
	if (module == NULL)
		FatalError("this Suricata lacks a module of the pipeline");
	TmSlotSetFuncAppend(tv, module, data);
}

static void
spawn(struct worker *w)
{
	const char *device = LiveGetShortName(opts.link);
	char name[TM_THREAD_NAME_MAX];
	ThreadVars *tv;

	snprintf(name, sizeof(name), "%s#%02u-%s", thread_name_workers, (unsigned int)w->queue + 1,
		 device != NULL ? device : opts.link);
	tv = TmThreadCreatePacketHandler(name, "packetpool", "packetpool", "packetpool",
					 "packetpool", "pktacqloop");
	if (tv == NULL)
		FatalError("no memory for a thread");
	if (w == workers)
		guard_layout(tv, name);
	tv->printable_name = SCStrdup(name);
	append(tv, &tmm_modules[receive_slot], w);
	append(tv, &tmm_modules[decode_slot], NULL);
	append(tv, TmModuleGetByName("FlowWorker"), NULL);
	/* not RespondReject: it sends through an interface of the kernel, see reject.c */
	TmThreadSetCPU(tv, WORKER_CPU_SET);
	if (TmThreadSpawn(tv) != TM_ECODE_OK)
		FatalError("a thread could not be started");
}

static int
run(void)
{
	uint16_t i;

	TimeModeSetLive();
	if (opts.attach_late)
		attach_eal();
	/* Not before the rules are loaded: packets would wait for that. */
	if (workers_n == 0)
		attach_link();
	DatalinkSetGlobalType(LINKTYPE_ETHERNET); /* of the packets that Suricata makes */
	LiveRegisterDevice(opts.link); /* "in_iface" of eve; earlier, its MTU would be asked for */
	for (i = 0; i < workers_n; i++) {
		workers[i].device = LiveGetDevice(opts.link);
		spawn(&workers[i]);
	}
	SCLogNotice("link \"%s\": %u worker%s from queue %u on, %s", opts.link, workers_n,
		    workers_n == 1 ? "" : "s", workers[0].queue, opts.ips ? "ips" : "ids");
	return 0;
}

static ips_answer
is_ips(void)
{
	if (opts.ips)
		EngineModeSetIPS();
	IPS_ANSWER(opts.ips);
}

/* ---- what Suricata calls ------------------------------------------------------ */

/* The link, too, if Suricata gives up the right to its files before the rules are loaded. */
static void
attach_early(void)
{
	attach_eal();
	if (suricata.do_setuid || suricata.do_setgid)
		attach_link();
}

/* -D forks between here and the threads; only the child that goes on is to attach. */
static void
in_child(void)
{
	static bool done;

	if (!done && suricata.daemon) {
		done = true;
		attach_early();
	}
}

static void
init(const char *args, int plugin_slot, int receive, int decode)
{
	guard_modules(receive);
	args_parse(args);
	stats_open();
	receive_slot = receive;
	decode_slot = decode;
	flows_register();
	capture_register(receive, decode);
	RunModeRegisterNewRunMode(plugin_slot, "workers", "one thread for each queue of the link",
				  run, is_ips);
	if (opts.attach_late)
		return;
	if (suricata.daemon)
		pthread_atfork(NULL, NULL, in_child);
	else
		attach_early();
}

static const char *
default_mode(void)
{
	return "workers";
}

static char capture_name[] = "nfmeta";
static SCCapturePlugin capture = {
	.name = capture_name,
	.Init = init,
	.GetDefaultMode = default_mode,
};

static void
plugin_init(void)
{
	SCPluginRegisterCapture(&capture);
}

static SCPlugin plugin = {
	PLUGIN_VERSIONS /* clang-format off */
	.name = "nfmeta",
	.author = "The libnfmeta authors",
	.license = "BSD-3-Clause",
	.Init = plugin_init,
}; /* clang-format on */

EXPORT SCPlugin *SCPluginRegister(void);

SCPlugin *
SCPluginRegister(void)
{
	guard_version();
	return &plugin;
}
