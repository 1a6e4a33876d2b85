package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/runtime/forwarder"
)

// DefaultBridge is the default name of the bridge.
const DefaultBridge = "podstead0"

// Options configure a network.
type Options struct {
	// StateFile, on disk, persists across boots. LeaseFile, in /run, is valid for one boot. Both are required. Their
	// directories are created.
	StateFile, LeaseFile string
	// BootID is the kernel's boot ID. Leases of another boot are ignored.
	BootID string
	// Bridge is the name of the bridge and of the nftables tables, and the comment on rules in other tables. It has at
	// most 15 letters, digits, "-" and "_". Empty means DefaultBridge.
	Bridge string
	// Subnets are one IPv4 subnet and optionally one IPv6 subnet. Empty means that the first Setup chooses subnets that
	// overlap no address and no route of the host. The choice persists.
	Subnets []netip.Prefix
	// NetnsPath is the network namespace of the host. Empty means that of this process.
	NetnsPath string
	// Forwarder listens on host ports if NetnsPath is not the network namespace of the host. Nil: it is. Close closes it.
	Forwarder *forwarder.Client
	// Log receives errors of background work and other warnings. Nil discards them.
	Log *slog.Logger
}

// Network is the pod network. It is safe for concurrent use. Changes are serialized; waiting callers return when their
// context ends.
type Network struct {
	opts      Options
	log       *slog.Logger
	namespace Namespace
	links     *netlink.Handle // used only with lock held

	hostNames hostNames

	sem chan struct{} // the semaphore of lock

	// mu guards the fields below. It is never held during I/O. Only the holder of lock writes leases and subnets.
	mu       sync.Mutex
	leases   map[string]*attachment
	listed   *peerList         // nil after each change of leases and subnets
	subnets  []netip.Prefix    // those of the bridge, while it is in use
	unknown  statefile.Unknown // of the lease file
	changed  chan struct{}
	removals []linkRemoval // links to be removed
	closed   bool
	state    State
	unsaved  bool // state is newer than its file
	workers  sync.WaitGroup
	busy     map[work]bool

	// base and rules are used only with lock held. base is nil until this process has verified what all pods share.
	base  *base
	rules *ruleset
	mark  int // of sockets of the forwarder; 0: they do not have the addresses of clients

	fault func(step string) error // lets tests fail or crash a step; nil otherwise
}

// work is a kind of background work. One goroutine runs for each kind.
type work string

const (
	removeLinks work = "remove links"
	saveState   work = "save state"
)

// New reads the state of a network. It does not change the host. If the leases cannot be read, they are recovered from
// the links of pods. The caller calls Close.
func New(ctx context.Context, o Options) (*Network, error) {
	o.Bridge, o.Log = cmp.Or(o.Bridge, DefaultBridge), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("set up network: %w", err)
	}
	if err := prepareDirs(o.StateFile, o.LeaseFile); err != nil {
		return nil, err
	}
	n := &Network{
		opts: o, log: o.Log,
		sem: make(chan struct{}, 1), changed: make(chan struct{}), busy: map[work]bool{},
	}
	var err error
	if n.state, err = LoadState(ctx, o.Log, o.StateFile); err != nil {
		return nil, err
	}
	file, found, err := LoadLeases(ctx, o.Log, o.LeaseFile, o.BootID)
	if err != nil {
		return nil, err
	}
	n.leases, n.subnets, n.unknown = attachments(file.Leases), file.Subnets, file.Unknown
	if n.namespace, err = OpenNamespace(o.NetnsPath); err != nil {
		return nil, err
	}
	n.rules = newRuleset(n.namespace, o.Bridge, o.Log)
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
		return errors.New("state file, lease file and boot ID are required")
	}
	if len(o.Bridge) > 15 {
		return fmt.Errorf("bridge %q: must be at most 15 characters", o.Bridge)
	}
	for _, r := range o.Bridge {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return fmt.Errorf("bridge %q: must consist of letters, digits, '-' and '_'", o.Bridge)
		}
	}
	return checkSubnets(o.Subnets)
}

// Close waits for background work and closes the connections to the kernel. Pods keep their network. No other method may
// be called afterwards.
func (n *Network) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.workers.Wait()
	if n.opts.Forwarder != nil {
		n.opts.Forwarder.Close()
	}
	n.links.Close()
	return errors.Join(n.rules.Close(), n.namespace.Close())
}

// lock serializes changes. The caller calls release exactly once.
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

// step runs one step of a change, unless ctx is done.
func (n *Network) step(ctx context.Context, name string, do func() error) error {
	err := ctx.Err()
	if err == nil && n.fault != nil {
		err = n.fault(name)
	}
	if err == nil {
		err = do()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// start runs background work in a goroutine unless that kind is running. The caller holds mu.
func (n *Network) start(kind work, do func()) {
	if n.busy[kind] || n.closed {
		return
	}
	n.busy[kind] = true
	n.workers.Go(do)
}

// notify wakes those who wait for a change of the peers. The caller holds mu.
func (n *Network) notify() {
	n.listed = nil
	close(n.changed)
	n.changed = make(chan struct{})
}

// saveLeases writes the leases. The caller holds lock. /run is in memory, so this is fast.
func (n *Network) saveLeases() error {
	n.mu.Lock()
	file := LeaseFile{
		BootID: n.opts.BootID, Subnets: n.subnets, Leases: make(map[string]*Lease, len(n.leases)), Unknown: n.unknown,
	}
	for uid, l := range n.leases {
		file.Leases[uid] = &l.Lease
	}
	n.mu.Unlock()
	return file.Write(n.opts.LeaseFile)
}

// saveStateSoon writes the state in the background: the disk may be slow, and losing the last addresses does no harm.
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
			n.log.Warn("last addresses of pods could not be saved", slog.Any("error", err))
		}
	}
}

// Diagnose checks the host for conditions that break the pod network. It changes nothing. Errors of checks that could not
// run are joined, and the findings of the other checks are returned beside them.
func (n *Network) Diagnose(ctx context.Context) ([]Finding, error) {
	n.mu.Lock()
	t := diagnosis{Namespace: n.namespace, Bridge: n.opts.Bridge, Subnets: slices.Clone(n.subnets), InUse: n.inUse()}
	n.mu.Unlock()
	findings, err := diagnose(ctx, t)
	bound, failed := n.boundByOthers(ctx)
	return append(findings, bound...), errors.Join(err, failed)
}
