// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The libnfmeta authors

// An NF: counts per flow, forgets flows when told, has them shunted, as ../../inspector.
// Exit status: 0 ended as asked, 1 could not start, 3 the splitter died.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"nfmeta.example/go/abi"
	"nfmeta.example/go/nfmeta"
)

const verdictsMax = 85 // as many as a message can have

type counts struct {
	Packets       uint64     `json:"packets"`
	Bytes         uint64     `json:"bytes"`
	Bursts        uint64     `json:"bursts"`
	Flows         uint64     `json:"flows"`
	WithoutRecord uint64     `json:"packets_without_record"`
	WithoutFlow   uint64     `json:"packets_without_flow"`
	Invalid       uint64     `json:"packets_invalid"`
	BadChecksum   uint64     `json:"packets_bad_checksum"`
	DropsAsked    uint64     `json:"drops_asked"`
	Digest        uint64     `json:"digest"`
	NsPerPacket   float64    `json:"ns_per_packet"`
	FlowState     flowCounts `json:"flow_state"`
}

// wishes are in packets; 0: none.
type wishes struct{ verdictAfter, dropEvery uint64 }

type nf struct {
	link *nfmeta.Link
	wishes
	flows    flows
	count    counts
	verdicts []abi.VerdictEntry
	busy     time.Duration // from a receive that gave packets to their return
}

func (n *nf) packet(p *nfmeta.Packet) {
	c := &n.count
	c.Packets++
	c.Bytes += uint64(p.Length())
	if n.dropEvery != 0 && c.Packets%n.dropEvery == 0 {
		p.How = abi.Drop
		c.DropsAsked++
	}
	r := p.Record()
	if r == nil { // nothing is known about it: look at its bytes
		c.WithoutRecord++
		c.WithoutFlow++
		return
	}
	if r.Flags()&abi.L2Valid == 0 {
		c.Invalid++
	}
	if r.Flags()&(abi.L3CsumBad|abi.L4CsumBad) != 0 {
		c.BadChecksum++
	}
	c.Digest += uint64(p.Byte(r.L3Off())) + uint64(p.Byte(r.PayloadOff()))
	if r.Flags()&abi.FlowKnown == 0 {
		c.WithoutFlow++
		return
	}
	f := n.flows.packet(r)
	if f == nil {
		return
	}
	f.packets++
	f.bytes += uint64(p.Length())
	if n.verdictAfter != 0 && f.packets >= n.verdictAfter && !f.said && f.known {
		f.said = true
		n.verdicts = append(n.verdicts,
			abi.VerdictEntry{FlowID: r.FlowID(), FlowGen: f.generation, Verdict: abi.ActionShunt})
	}
}

func (n *nf) reply() error {
	some := n.verdicts
	if len(some) == 0 {
		return nil
	}
	if len(some) > verdictsMax {
		some = some[:verdictsMax]
	}
	sent, err := n.link.Reply(some)
	if sent {
		n.flows.count.VerdictsSent += uint64(len(some))
		n.verdicts = append(n.verdicts[:0], n.verdicts[len(some):]...)
	}
	return err
}

// burst returns how many packets there were.
func (n *nf) burst() (int, error) {
	start := time.Now()
	packets := n.link.RecvBurst()
	if len(packets) == 0 {
		return 0, nil
	}
	for i := range packets {
		n.packet(&packets[i])
	}
	// before they go back: an upfront NF that has them knows the verdict
	err := n.reply()
	n.link.ReturnBurst(packets)
	n.busy += time.Since(start)
	n.count.Bursts++
	return len(packets), err
}

func (n *nf) messages() error {
	for {
		m, err := n.link.FlowNext()
		if m == nil || err != nil {
			return err
		}
		n.flows.message(m)
	}
}

func (n *nf) run(ctx context.Context) error {
	told := n.link.Carrier == abi.CarrierRing || n.link.Carrier == abi.CarrierInband
	if told {
		if err := n.link.Subscribe(abi.New, abi.Update, abi.Delete); err != nil {
			return err
		}
	}
	var nextCheck time.Time
	closing := false
	for idle := 0; ctx.Err() == nil; {
		got, err := n.burst()
		if err != nil {
			return err
		}
		before := n.flows.count.Messages
		if told {
			if err := n.messages(); err != nil {
				return err
			}
		}
		switch {
		case got != 0 || n.flows.count.Messages != before:
			idle = 0
		case closing:
			return nil
		case idle < 1000:
			idle++
			runtime.Gosched()
		default:
			time.Sleep(100 * time.Microsecond)
		}
		if now := time.Now(); now.After(nextCheck) {
			nextCheck = now.Add(250 * time.Millisecond)
			if err := n.reply(); err != nil {
				return err
			}
			stands, err := n.link.Check()
			if err != nil {
				return err
			}
			closing = !stands
		}
	}
	return nil
}

func (n *nf) report() error {
	n.flows.count.Open = n.flows.forget(true)
	n.flows.count.Sync = "off"
	if n.link.Carrier != 0 {
		s, err := n.link.FlowStats()
		if err != nil {
			return err
		}
		n.flows.count.Sync, n.flows.count.Gaps, n.flows.count.Stale = s.Sync, s.Gaps, s.Stale
	}
	n.flows.count.Refused = n.link.Refused
	n.count.Flows = n.flows.count.Opened
	if n.count.Packets > 0 {
		n.count.NsPerPacket = float64(n.busy.Nanoseconds()) / float64(n.count.Packets)
	}
	n.count.FlowState = n.flows.count
	return nil
}

func (n *nf) write(path string) error {
	text, err := json.MarshalIndent(struct {
		Program string `json:"program"`
		Version string `json:"version"`
		counts
	}{"nf", nfmeta.Version(), n.count}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func serve(o nfmeta.Options, w wishes, json string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	link, err := nfmeta.Attach(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if e := link.Close(); err == nil {
			err = e
		}
	}()
	n := nf{link: link, wishes: w}
	err = n.run(ctx)
	if e := n.report(); err == nil {
		err = e
	}
	if json != "" {
		if e := n.write(json); err == nil {
			err = e
		}
	}
	fmt.Printf("nf: %d packets, %d with a record; flows: opened %d, deleted %d; verdicts %d\n",
		n.count.Packets, n.count.Packets-n.count.WithoutRecord, n.count.FlowState.Opened,
		n.count.FlowState.Deleted, n.count.FlowState.VerdictsSent)
	return err
}

func options() (o nfmeta.Options, w wishes, json string, err error) {
	f := flag.NewFlagSet("nf", flag.ContinueOnError)
	f.SetOutput(io.Discard) // one line says what is wrong
	f.StringVar(&o.Link, "link", "ids", "name of the link")
	queue := f.Uint("queue", 0, "its queue")
	f.StringVar(&o.FilePrefix, "file-prefix", "nfmeta", "the splitter's")
	timeout := f.Uint("timeout", 10, "seconds to wait for the splitter and its link")
	f.Uint64Var(&w.dropEvery, "drop-every", 0, "have every Nth packet dropped; 0: none")
	f.Uint64Var(&w.verdictAfter, "verdict-after", 0, "have a flow shunted after so many packets; 0: never")
	f.StringVar(&json, "json", "", "file to write a report to")
	err = f.Parse(os.Args[1:])
	o.Queue, o.Timeout = uint16(*queue), time.Duration(*timeout)*time.Second
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(os.Stdout)
		f.PrintDefaults()
		os.Exit(0)
	case err != nil:
	case f.NArg() > 0:
		err = fmt.Errorf("%q is not an option (see --help)", f.Arg(0))
	case *queue > 63:
		err = fmt.Errorf("--queue: %d is not from 0 to 63", *queue)
	case *timeout > 1e6:
		err = fmt.Errorf("--timeout: %d is more than 1000000", *timeout)
	}
	return
}

func main() {
	o, w, json, err := options()
	if err == nil {
		err = serve(o, w, json)
	}
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "nf:", err)
	if nfmeta.IsGone(err) {
		os.Exit(3)
	}
	os.Exit(1)
}
