/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The libnfmeta authors
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <rte_ether.h>

#include "tapper.h"

#define SEGMENTS 64 /* of a packet, at most */
#define TAGS 2	    /* VLAN tags that may have to be put back */
#define MACS 12u    /* bytes before them */

struct frame {
	struct iovec part[SEGMENTS + 2];
	uint8_t tag[TAGS][4];
};

/* ---- open ----------------------------------------------------------------------- */

static bool
is_tap(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/net/%s/tun_flags", name);
	return access(path, F_OK) == 0;
}

/* The kernel's own packets (neighbour discovery) are none of the input. */
static void
keep_quiet(const char *name)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", name);
	f = fopen(path, "w");
	if (f == NULL)
		return; /* a kernel without IPv6 */
	fputs("1", f);
	fclose(f);
}

static int
bring_up(const char *name, uint32_t mtu)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;
	struct ifreq r = {0};

	if (fd < 0)
		return complain("no socket: %s", strerror(errno));
	memcpy(r.ifr_name, name, strlen(name));
	r.ifr_mtu = (int)mtu;
	if (mtu != 0 && ioctl(fd, SIOCSIFMTU, &r) != 0) {
		rc = complain("--mtu %u: interface \"%s\" does not take it: %s", mtu, name,
			      strerror(errno));
	} else if (ioctl(fd, SIOCGIFFLAGS, &r) == 0) {
		r.ifr_flags |= IFF_UP;
		if (ioctl(fd, SIOCSIFFLAGS, &r) != 0)
			rc = complain("interface \"%s\" cannot be brought up: %s", name,
				      strerror(errno));
	}
	close(fd);
	return rc;
}

static int
open_tap(struct iface *i, const char *name, uint32_t mtu)
{
	bool exists = if_nametoindex(name) != 0;
	struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI};

	if (exists && !is_tap(name))
		return complain("--tap \"%s\": there is an interface of that name, and it is no"
				" tap: choose another name, or --iface to send out of it",
				name);
	i->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (i->fd < 0)
		return complain("/dev/net/tun: %s (modprobe tun; a container has to be given it)",
				strerror(errno));
	memcpy(r.ifr_name, name, strlen(name));
	if (ioctl(i->fd, TUNSETIFF, &r) != 0)
		return complain("--tap \"%s\": %s", name,
				errno == EBUSY	 ? "another program has it"
				: errno == EPERM ? "not allowed: run as root, or with CAP_NET_ADMIN"
						 : strerror(errno));
	if (!exists)
		keep_quiet(name);
	return bring_up(name, mtu);
}

static int
open_packet(struct iface *i, const char *name)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET};
	int one = 1, room = 4 << 20;

	to.sll_ifindex = (int)if_nametoindex(name);
	if (to.sll_ifindex == 0)
		return complain("--iface \"%s\": there is no such interface (ip link)", name);
	/* protocol 0: nothing is received */
	i->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (i->fd < 0)
		return complain("--iface \"%s\": %s", name,
				errno == EPERM ? "not allowed: run as root, or with CAP_NET_RAW"
					       : strerror(errno));
	if (bind(i->fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		return complain("--iface \"%s\": %s", name, strerror(errno));
	setsockopt(i->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
	setsockopt(i->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	return 0;
}

int
iface_open(struct iface *i, const struct tapper_opts *o)
{
	const char *name = o->tap != NULL ? o->tap : o->iface;

	*i = (struct iface){.fd = -1, .tap = o->tap != NULL, .name = name};
	if (strlen(name) == 0 || strlen(name) >= IFNAMSIZ || strpbrk(name, "/ \t\n%") != NULL)
		return complain("%s \"%s\": a name of 1 to %d characters, without blanks, \"/\""
				" and \"%%\", is wanted",
				i->tap ? "--tap" : "--iface", name, IFNAMSIZ - 1);
	if ((i->tap ? open_tap(i, name, o->mtu) : open_packet(i, name)) != 0) {
		iface_close(i);
		return -1;
	}
	return 0;
}

void
iface_close(struct iface *i)
{
	if (i->fd >= 0)
		close(i->fd);
	i->fd = -1;
}

/* ---- write ------------------------------------------------------------------------ */

static void
put_tag(uint8_t *to, uint16_t type, uint16_t tci)
{
	type = htons(type);
	tci = htons(tci);
	memcpy(to, &type, 2);
	memcpy(to + 2, &tci, 2);
}

/* Tags that were stripped into the mbuf are part of the packet again. 0: it cannot be. */
static unsigned int
make_frame(struct frame *f, const struct rte_mbuf *m)
{
	const uint64_t qinq = RTE_MBUF_F_RX_QINQ_STRIPPED, vlan = RTE_MBUF_F_RX_VLAN_STRIPPED;
	unsigned int n = 0, tags = 0;

	if (m->nb_segs > SEGMENTS)
		return 0;
	if ((m->ol_flags & (qinq | vlan)) != 0 && m->data_len >= MACS) {
		if ((m->ol_flags & qinq) != 0)
			put_tag(f->tag[tags++], RTE_ETHER_TYPE_QINQ, m->vlan_tci_outer);
		put_tag(f->tag[tags++], RTE_ETHER_TYPE_VLAN, m->vlan_tci);
		f->part[n++] = (struct iovec){rte_pktmbuf_mtod(m, void *), MACS};
		f->part[n++] = (struct iovec){f->tag, tags * 4};
		f->part[n++] = (struct iovec){rte_pktmbuf_mtod_offset(m, void *, MACS),
					      (size_t)m->data_len - MACS};
		m = m->next;
	}
	for (; m != NULL; m = m->next)
		f->part[n++] = (struct iovec){rte_pktmbuf_mtod(m, void *), m->data_len};
	return n;
}

/* It did not take a packet; -1: it never will again, the line is said. */
static int
refused(struct iface *i, int error)
{
	switch (error) {
	case EMSGSIZE:
	case EINVAL: /* less than an Ethernet header */
		i->c.too_big++;
		return 0;
	case EIO: /* a tap that is down */
	case ENETDOWN:
		i->c.down++;
		return 0;
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM:
		i->c.no_room++;
		return 0;
	default:
		i->c.gone++;
		return complain("interface \"%s\" is gone: %s", i->name, strerror(error));
	}
}

static int
write_tap(struct iface *i, struct rte_mbuf *const *pkts, uint16_t n)
{
	struct frame f;
	unsigned int parts;
	uint16_t k;
	int rc = 0;

	for (k = 0; k < n && rc == 0; k++) {
		parts = make_frame(&f, pkts[k]);
		if (parts == 0)
			rc = refused(i, EMSGSIZE);
		else if (writev(i->fd, f.part, (int)parts) < 0)
			rc = refused(i, errno);
		else
			i->c.written++;
	}
	i->c.gone += n - k;
	return rc;
}

/* One system call for a burst; one more for each packet that was refused. */
static int
write_packet(struct iface *i, struct rte_mbuf *const *pkts, uint16_t n)
{
	static struct frame frames[BURST];
	struct mmsghdr msg[BURST] = {0};
	uint16_t k, at = 0, made = 0;
	int sent, rc = 0;

	for (k = 0; k < n; k++) {
		msg[made].msg_hdr.msg_iov = frames[made].part;
		msg[made].msg_hdr.msg_iovlen = make_frame(&frames[made], pkts[k]);
		if (msg[made].msg_hdr.msg_iovlen > 0)
			made++;
		else
			refused(i, EMSGSIZE);
	}
	while (at < made && rc == 0) {
		sent = sendmmsg(i->fd, msg + at, made - at, MSG_DONTWAIT);
		if (sent > 0) {
			i->c.written += (unsigned int)sent;
			at = (uint16_t)(at + sent);
		} else {
			rc = refused(i, errno);
			at++;
		}
	}
	i->c.gone += made - at;
	return rc;
}

int
iface_write(struct iface *i, struct rte_mbuf *const *pkts, uint16_t n)
{
	return i->tap ? write_tap(i, pkts, n) : write_packet(i, pkts, n);
}
