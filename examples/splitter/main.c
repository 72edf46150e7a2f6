/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 *
 * splitter - the upfront NF: classifies once, owns the flows, hands packets
 * with their records to the NFs of a link, forwards what they return.
 */
#include "splitter.h"

int
main(int argc, char **argv)
{
	struct splitter_opts o;
	struct splitter *s;
	int rc;

	say_program(argv[0]);
	splitter_defaults(&o);
	rc = splitter_options(argc, argv, &o);
	if (rc != 0)
		return rc > 0 ? EXIT_OK : EXIT_BAD;
	stop_install();
	if (o.rules != NULL || o.policy_file != NULL)
		reload_install();
	s = splitter_open(&o);
	if (s == NULL)
		return EXIT_BAD;
	rc = splitter_run(s);
	return splitter_close(s, rc);
}
