// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors
#include <click/config.h>
#include "walk.hh"
#include "nfmeta-fastclick.h"
#include <click/args.hh>
#include <click/router.hh>
#include <click/routervisitor.hh>
#include <string.h>
CLICK_DECLS

// Elements that leave the IP header and what is behind it as they are. Any other may write.
static const char *const readers[] = {
    "AggregateCounter", "AggregateIP", "AggregateIPAddrPair", "AggregateIPFlows", "AverageCounter",
    "AverageCounterMP", "BandwidthMeter", "BandwidthRatedUnqueue", "CPUSwitch", "CheckAverageLength",
    "CheckICMPHeader", "CheckIPHeader", "CheckIPHeader2", "CheckLength", "CheckPaint",
    "CheckTCPHeader", "CheckUDPHeader", "Classifier", "Counter", "CounterMP", "Discard",
    "EtherEncap", "EtherMirror", "EtherRewrite", "ExactCPUSwitch", "FrontDropQueue", "HashSwitch",
    "HostEtherFilter", "IPClassifier", "IPFilter", "IPPrint", "Idle", "MarkIPHeader",
    "MarkMACHeader", "Meter", "NfmetaAction", "Null", "Paint", "PaintSwitch", "PaintTee",
    "Pipeliner", "Print", "Queue", "RandomSwitch", "RatedUnqueue", "RoundRobinIPMapper",
    "RoundRobinSwitch", "SetTimestamp", "SimpleQueue", "StaticSwitch", "Strip",
    "StripToNetworkHeader", "Switch", "Tee", "ThreadSafeQueue", "TimestampAccum", "Unqueue",
    "Unstrip", "UnstripAnno", "VLANDecap", "VLANEncap",
};

static const char *const markers[] = {"CheckIPHeader", "CheckIPHeader2", "MarkIPHeader"};
static const char *const l4_checks[] = {"CheckICMPHeader", "CheckTCPHeader", "CheckUDPHeader"};

template <size_t N>
static bool
is_one_of(const char *name, const char *const (&words)[N])
{
    for (const char *word : words)
        if (strcmp(name, word) == 0)
            return true;
    return false;
}

// The value of a keyword in an element's configuration, if it is there.
static void
keyword(Element *e, const char *name, bool &value)
{
    Vector<String> conf;

    cp_argvec(e->router()->econfiguration(e->eindex()), conf);
    for (String &arg : conf)
        if (cp_shift_spacevec(arg) == name)
            BoolArg().parse(arg.trim_space(), value);
}

namespace {
class WhoWrites : public RouterVisitor { public:
    unsigned checked;         // the protocol that is looked for
    Element *writer = nullptr;
    Element *unchecked = nullptr; // checks headers, but not checksums
    bool found = false;

    explicit WhoWrites(unsigned c) : checked(c) {}

    // Does e stop packets of this protocol that have a wrong checksum?
    bool checks(Element *e)
    {
        const char *name = e->class_name();
        const char *l4 = checked == FC_CHECKED_TCP   ? "CheckTCPHeader"
                         : checked == FC_CHECKED_UDP ? "CheckUDPHeader"
                                                     : "CheckICMPHeader";
        // CheckIPHeader's default is false, though its documentation says true; the other's is true.
        bool is_ip = strcmp(name, "CheckIPHeader") == 0 || strcmp(name, "CheckIPHeader2") == 0;
        bool wanted = checked == FC_CHECKED_IP ? is_ip : strcmp(name, l4) == 0;
        bool checksum = !is_ip;

        if (!wanted)
            return false;
        keyword(e, "CHECKSUM", checksum);
        if (!checksum)
            unchecked = e;
        return checksum;
    }

    bool visit(Element *e, bool isoutput, int, Element *, int, int) override
    {
        if (!isoutput || writer)
            return false;
        if (checks(e)) {
            found = true;
            return false;
        }
        if (checked == FC_CHECKED_IP && is_one_of(e->class_name(), markers)) {
            writer = e; // says where a header is that nobody has checked
            return false;
        }
        // What checks another protocol lets packets of that one pass, and no others.
        if (checked != FC_CHECKED_IP && is_one_of(e->class_name(), l4_checks))
            return false;
        // Behind another link: an NF may have written.
        if (strcmp(e->class_name(), "FromNfmeta") == 0)
            writer = e;
        // A way without a check: packets have no header annotation there, nothing is promised.
        if (e->ninputs() == 0)
            return false;
        if (!is_one_of(e->class_name(), readers))
            writer = e;
        return !writer;
    }
};

// FastClick's FromDPDKDevice leaves the annotations of an earlier packet, unless it is told not to.
class WhoLeaves : public RouterVisitor { public:
    Element *stale = nullptr;

    bool visit(Element *e, bool isoutput, int, Element *, int, int) override
    {
        bool clear = false;
        if (isoutput && strcmp(e->class_name(), "FromDPDKDevice") == 0) {
            keyword(e, "CLEAR", clear);
            if (!clear)
                stale = e;
        }
        return isoutput && !stale;
    }
};
}

int
nfmeta_walk(Element *e, unsigned checked, ErrorHandler *errh)
{
    static const struct {
        unsigned bit;
        const char *name, *who;
    } kinds[] = {{FC_CHECKED_IP, "IP", "CheckIPHeader(CHECKSUM true)"},
                 {FC_CHECKED_TCP, "TCP", "CheckTCPHeader"},
                 {FC_CHECKED_UDP, "UDP", "CheckUDPHeader"},
                 {FC_CHECKED_ICMP, "ICMP", "CheckICMPHeader"}};

    WhoLeaves leaves;

    e->router()->visit_upstream(e, 0, &leaves);
    if (leaves.stale)
        return errh->error("%s leaves annotations of earlier packets on new ones: give it CLEAR true",
                           leaves.stale->declaration().c_str());
    for (auto &k : kinds) {
        if (!(checked & k.bit))
            continue;
        WhoWrites v(k.bit);
        e->router()->visit_upstream(e, 0, &v);
        if (v.unchecked)
            return errh->error("CHECKED %s: %s does not verify checksums: give it CHECKSUM true", k.name,
                               v.unchecked->declaration().c_str());
        if (v.writer && is_one_of(v.writer->class_name(), markers))
            return errh->error("CHECKED %s: %s lets packets pass that no %s has seen", k.name,
                               v.writer->declaration().c_str(), k.who);
        if (v.writer)
            return errh->error("CHECKED %s: %s may write to packets behind the %s: check behind it, "
                               "leave %s out, or use CLASSIFY true",
                               k.name, v.writer->declaration().c_str(), k.who, k.name);
        if (!v.found)
            return errh->error("CHECKED %s: there is no %s before", k.name, k.who);
    }
    return 0;
}

CLICK_ENDDECLS
