package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/podstead/podstead/runtime/network/diagnose"
	"github.com/podstead/podstead/runtime/network/kernel"
	"github.com/podstead/podstead/runtime/network/lease"
	"github.com/podstead/podstead/runtime/network/ruleset"
	"github.com/podstead/podstead/runtime/network/subnet"
)

// DefaultBridge is the name of the bridge unless another is asked for.
const DefaultBridge = "podstead0"

// Options say where a network is.
type Options struct {
	// StateFile, on disk, holds what lasts over boots. LeaseFile, in /run, holds what is void after one. Both are needed;
	// folders are made.
	StateFile, LeaseFile string
	// BootID is the kernel's of this boot. Leases of another are void.
	BootID string
	// Bridge is the name of the bridge, of the nftables table, and the comment on rules elsewhere; at most 15 letters,
	// digits, "-" and "_". Empty means DefaultBridge.
	Bridge string
	// Subnets are one of IPv4 and, if wanted, one of IPv6. Empty means: chosen at the first Setup, such that they overlap
	// no address and no route of the machine, and kept from then on.
	Subnets []netip.Prefix
	// NetnsPath is the network namespace that is "the machine". Empty means that of this process.
	NetnsPath string
	// Log is told what nobody's call returns. Nil means nothing is told.
	Log *slog.Logger
}

// Network is the pod network. Its methods are safe for concurrent use. Each change waits for the one before it, as long as
// its context says.
type Network struct {
	opts      Options
	log       *slog.Logger
	namespace kernel.Namespace
	links     *netlink.Handle // used by the holder of turn only

	sem chan struct{} // held during a change

	// mu guards what follows. It is never held while something waits. Only the holder of turn writes leases and subnets.
	mu       sync.Mutex
	leases   map[string]*attachment
	subnets  []netip.Prefix // in use: those of the bridge
	changed  chan struct{}
	removals []linkRemoval // links to be removed
	closed   bool
	state    lease.State
	unsaved  bool // state is newer than its file
	workers  sync.WaitGroup
	busy     map[work]bool

	// base and firewall are for the holder of turn. base is nil until this process has made sure of what all pods need.
	base  *base
	rules *ruleset.Ruleset

	fault func(step string) error // tests make a step fail, or end the process there; nil otherwise
}

// work is a kind of thing that is done beside the callers, by one goroutine each.
type work string

const (
	removeLinks work = "remove links"
	saveState   work = "save state"
)

// New reads the state of a network and changes nothing on the machine. Leases that cannot be read are replaced by what the
// links of the pods show. The caller calls Close.
func New(ctx context.Context, o Options) (*Network, error) {
	if o.Bridge == "" {
		o.Bridge = DefaultBridge
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("set up network: %w", err)
	}
	if err := lease.PrepareDirs(o.StateFile, o.LeaseFile); err != nil {
		return nil, err
	}
	n := &Network{
		opts: o, log: o.Log,
		sem: make(chan struct{}, 1), changed: make(chan struct{}), busy: map[work]bool{},
	}
	var err error
	if n.state, err = lease.LoadState(ctx, o.Log, o.StateFile); err != nil {
		return nil, err
	}
	file, found, err := lease.Load(ctx, o.Log, o.LeaseFile, o.BootID)
	if err != nil {
		return nil, err
	}
	n.leases, n.subnets = attachments(file.Leases), file.Subnets
	if n.namespace, err = kernel.Open(o.NetnsPath); err != nil {
		return nil, err
	}
	n.rules = ruleset.New(n.namespace, o.Bridge, o.Log)
	if n.links, err = n.namespace.Netlink(); err != nil {
		return nil, errors.Join(err, n.namespace.Close())
	}
	if !found {
		if err := n.recoverLeases(ctx); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

func (o *Options) check() error {
	if o.StateFile == "" || o.LeaseFile == "" || o.BootID == "" {
		return errors.New("a state file, a lease file and the boot ID are needed")
	}
	if len(o.Bridge) > 15 {
		return fmt.Errorf("bridge %q: a name has at most 15 characters", o.Bridge)
	}
	for _, r := range o.Bridge {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return fmt.Errorf("bridge %q: letters, digits, - and _ make a name", o.Bridge)
		}
	}
	return subnet.Check(o.Subnets)
}

// Close waits for what is done beside the callers, and lets go of the machine; pods keep their network. No other method
// may be called after it.
func (n *Network) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.workers.Wait()
	n.links.Close()
	return errors.Join(n.rules.Close(), n.namespace.Close())
}

// lock waits for the turn of the caller, who calls release once.
func (n *Network) lock(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case n.sem <- struct{}{}:
		return func() { <-n.sem }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// step does something to the machine, after ctx has been asked.
func (n *Network) step(ctx context.Context, name string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if n.fault != nil {
		if err := n.fault(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// start has a kind of work done by a goroutine, unless one is at it. mu is held.
func (n *Network) start(kind work, do func()) {
	if n.busy[kind] || n.closed {
		return
	}
	n.busy[kind] = true
	n.workers.Go(do)
}

// announce tells those who wait for a change of the peers. mu is held.
func (n *Network) notify() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// saveLeases writes the leases, with the turn held. /run is memory, so this takes no longer than the other steps.
func (n *Network) saveLeases() error {
	n.mu.Lock()
	file := lease.File{BootID: n.opts.BootID, Subnets: n.subnets, Leases: make(map[string]*lease.Lease, len(n.leases))}
	for uid, l := range n.leases {
		file.Leases[uid] = &l.Lease
	}
	n.mu.Unlock()
	return file.Write(n.opts.LeaseFile)
}

// saveStateSoon writes what lasts, beside the callers: the disk may be slow, and a pod's last address is a kindness.
func (n *Network) saveStateSoon() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unsaved = true
	n.start(saveState, n.writeState)
}

func (n *Network) writeState() {
	for {
		n.mu.Lock()
		if !n.unsaved {
			n.busy[saveState] = false
			n.mu.Unlock()
			return
		}
		n.unsaved = false
		s := n.state
		s.Subnets, s.Addresses = slices.Clone(s.Subnets), slices.Clone(s.Addresses)
		n.mu.Unlock()
		if err := s.Write(n.opts.StateFile); err != nil {
			n.log.Warn("the addresses of pods cannot be kept", slog.Any("error", err))
		}
	}
}

// Diagnose looks for conditions that break the pod network. It changes nothing. A check that fails to run is an error beside
// the findings of the others. The error is never instead of them.
func (n *Network) Diagnose(ctx context.Context) ([]Finding, error) {
	n.mu.Lock()
	t := diagnose.Target{Namespace: n.namespace, Bridge: n.opts.Bridge, Subnets: slices.Clone(n.subnets), InUse: n.inUse()}
	n.mu.Unlock()
	return diagnose.Run(ctx, t)
}
