// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#ifndef NFMETA_FASTCLICK_WALK_HH
#define NFMETA_FASTCLICK_WALK_HH
#include <click/element.hh>
#include <click/error.hh>
CLICK_DECLS

/*
 * Is what the configuration says was checked still true where packets reach e?  Every
 * way up from e has to reach an element that checks without meeting one that may write.
 * checked: FC_CHECKED_*.  0, or -1 and errh names the element in the way.
 */
int nfmeta_walk(Element *e, unsigned checked, ErrorHandler *errh);

CLICK_ENDDECLS
#endif
