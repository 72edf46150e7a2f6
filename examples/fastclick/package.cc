// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
//
// What require(package "nfmeta") loads.
#include <click/config.h>
#include <click/package.hh>
#include "fromnfmeta.hh"
#include "nfmetaaction.hh"
#include "nfmetaflow.hh"
#include "tonfmeta.hh"
CLICK_USING_DECLS

static int types[4];

static Element *
make(uintptr_t which)
{
    switch (which) {
    case 0:
        return new ToNfmeta;
    case 1:
        return new FromNfmeta;
    case 2:
        return new NfmetaFlow;
    default:
        return new NfmetaAction;
    }
}

extern "C" int
init_module()
{
    static const char *const names[] = {"ToNfmeta", "FromNfmeta", "NfmetaFlow", "NfmetaAction"};

    click_provide("nfmeta");
    for (uintptr_t i = 0; i < 4; i++)
        types[i] = click_add_element_type(names[i], make, i);
    return 0;
}

extern "C" void
cleanup_module()
{
    for (int type : types)
        click_remove_element_type(type);
    click_unprovide("nfmeta");
}
