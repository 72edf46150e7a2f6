/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * inspector - an NF: serves one queue of a splitter's link, from a process of
 * its own.
 */
#include "inspector.h"

#define SLICE_MS 200 /* a signal is heard that often while waiting for a primary */

static int
attach_eal(const struct inspector_opts *o)
{
	struct nfmeta_eal_opts eo =
		NFMETA_EAL_OPTS(.file_prefix = o->file_prefix,
				.log_file = o->verbose ? "/dev/stderr" : NULL, );
	uint64_t left = o->timeout * 1000;
	int rc;

	do {
		eo.timeout_ms = (uint32_t)(left < SLICE_MS ? left : SLICE_MS);
		left -= eo.timeout_ms;
		rc = nfmeta_eal_attach(&eo);
	} while ((rc == -NFMETA_ENOPRIMARY || rc == -NFMETA_EPRIMARYDEAD) && left > 0 &&
		 !stop_asked());
	return rc == 0 ? 0 : complain("%s", nfmeta_error());
}

int
main(int argc, char **argv)
{
	struct inspector_result r = {.status = EXIT_BAD};
	struct inspector_opts o;
	struct json json;
	int rc;

	say_program(argv[0]);
	inspector_defaults(&o);
	rc = inspector_options(argc, argv, &o);
	if (rc != 0)
		return rc > 0 ? EXIT_OK : EXIT_BAD;
	stop_install();
	drain_install();
	if (json_open(&json, o.json) != 0)
		return EXIT_BAD;
	if (attach_eal(&o) == 0) {
		inspector_run(&o, &r);
		nfmeta_eal_detach();
	}
	if (r.ended == NULL) {
		json_discard(&json);
		return r.status;
	}
	if (!o.quiet)
		inspector_summary(&o, &r);
	json_object(&json, NULL);
	inspector_json(&json, &o, &r);
	if (json_close(&json) != 0 && r.status == EXIT_OK)
		r.status = EXIT_BAD;
	return r.status;
}
