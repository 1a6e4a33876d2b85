package network

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// The ruleset writes the nftables rules of a pod network: translation of host ports, rejection of packets that
// cannot reach a pod, masquerading, filtering of forwarded packets, and the guard against spoofed senders.
//
// It owns two tables with the bridge's name, one of family inet and one of family bridge, with a forwarder a third one, and the rules with
// the bridge's name as comment in the FORWARD chains of iptables. It keeps no state: callers pass the endpoints. It must not make links
// or addresses.

// endpoint is a pod with an address of its own.
type endpoint struct {
	Link  string       // the host's end of the veth pair
	IPs   []netip.Addr // IPv4 first
	Ports []Port
}

// ruleset is the rules of one network. It is not safe for concurrent use.
type ruleset struct {
	namespace Namespace
	bridge    string
	log       *slog.Logger
	conn      *Nftables // nil until it is needed, and after an error
}

// newRuleset returns the rules for a bridge in a network namespace. It changes nothing. The caller calls Close.
func newRuleset(namespace Namespace, bridge string, log *slog.Logger) *ruleset {
	return &ruleset{namespace: namespace, bridge: bridge, log: log}
}

// Close closes the connection to the kernel. The rules stay.
func (r *ruleset) Close() error {
	if r.conn == nil {
		return nil
	}
	c := r.conn
	r.conn = nil
	return c.CloseLasting()
}

// errStale means that the rules in the kernel differ from those written, such as after "nft flush ruleset". The caller
// writes them again.
var errStale = errors.New("the nftables rules were changed by another program")

// linkPrefix is the prefix of the names of the host's ends of veth pairs on a bridge. The guard applies to these links.
func linkPrefix(bridge string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(bridge)) // never fails
	return fmt.Sprintf("ps%04x", h.Sum32()&0xffff)
}

// Exists reports whether the table with the port translation exists.
func (r *ruleset) Exists(ctx context.Context) (bool, error) {
	return r.hasTable(ctx, r.table())
}

// GuardExists reports whether the table with the guard exists.
func (r *ruleset) GuardExists(ctx context.Context) (bool, error) {
	return r.hasTable(ctx, r.guardTable())
}

func (r *ruleset) hasTable(ctx context.Context, t *nftables.Table) (found bool, err error) {
	err = r.do(ctx, func(c *nftables.Conn) error {
		_, err := c.ListTableOfFamily(t.Name, t.Family)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("get table %s: %w", t.Name, err)
		}
		found = true
		return nil
	})
	return found, err
}

// Delete deletes all tables and the rules in the chains of iptables. It is no error if there are none.
func (r *ruleset) Delete(ctx context.Context) error {
	errs := []error{r.deleteForwardRules(ctx)}
	for _, t := range []*nftables.Table{r.table(), r.guardTable(), r.sourcesTable(), r.refusalsTable()} {
		found, err := r.hasTable(ctx, t)
		if found {
			err = r.do(ctx, func(c *nftables.Conn) error {
				c.DelTable(t)
				return c.Flush()
			})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// do calls f with the connection to nftables. The connection is kept: closing one after a deletion blocks for about 10 ms
// until the kernel has freed the memory. After an error it is closed, since unread replies may be left in it.
func (r *ruleset) do(ctx context.Context, f func(*nftables.Conn) error) error {
	err := ctx.Err()
	if err == nil && r.conn == nil {
		r.conn, err = r.namespace.Nftables()
	}
	if err != nil {
		return err
	}
	if err = r.conn.ExtendDeadline(); err == nil {
		err = f(r.conn.Conn)
	}
	if err != nil {
		return errors.Join(once(err), r.Close())
	}
	return nil
}

// onceError is an error whose message has each line once.
type onceError struct {
	error
	text string
}

func (e *onceError) Error() string { return e.text }
func (e *onceError) Unwrap() error { return e.error }

// once shortens the error of a flush, which has the same timeout for each message that the kernel has not answered. The first line may have
// a prefix.
func once(err error) error {
	var kept []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		repeated := slices.Contains(kept, line) || len(kept) == 1 && strings.HasSuffix(kept[0], ": "+line)
		if !repeated {
			kept = append(kept, line)
		}
	}
	return &onceError{err, strings.Join(kept, "\n")}
}

// changeElements adds elements to a set or deletes them.
type changeElements func(*nftables.Conn, *nftables.Set, []nftables.SetElement) error

var (
	addElements    changeElements = (*nftables.Conn).SetAddElements
	deleteElements changeElements = (*nftables.Conn).SetDeleteElements
)

// staleError returns errStale for an error that means a missing or unexpected table, set or element, else err.
func staleError(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY) {
		return errStale
	}
	return err
}
