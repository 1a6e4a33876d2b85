package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

// A packet that is forwarded passes every base chain of the forward hook, and one that drops it has the last word; what
// ours accepts does not count there. Docker and ufw set the policy of iptables' FORWARD chain to drop. So where that chain
// exists, two rules that accept what comes from or goes to the bridge are put at its head. What may go to pods is decided
// by our own chain. The rules are written as iptables itself does, which cannot read tables with more than that.

// tableExists reports whether our table is in the kernel. The turn is held.
func (n *Network) tableExists(ctx context.Context) (there bool, err error) {
	return n.hasTable(ctx, nftables.TableFamilyINet)
}

// hasTable is tableExists for a table of any family.
func (n *Network) hasTable(ctx context.Context, f nftables.TableFamily) (there bool, err error) {
	err = n.nft(ctx, func(c *firewall) error {
		_, err := c.ListTableOfFamily(n.opts.Bridge, f)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for table %s: %w", n.opts.Bridge, err)
		}
		there = true
		return nil
	})
	return there, err
}

// iptablesForward are the FORWARD chains of iptables that exist with nftables below them, for IPv4 and IPv6.
func iptablesForward(c *firewall) ([]*nftables.Chain, error) {
	var found []*nftables.Chain
	for _, f := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6} {
		chains, err := c.ListChainsOfTableFamily(f)
		if err != nil {
			return nil, fmt.Errorf("list chains of iptables: %w", err)
		}
		for _, ch := range chains {
			if isIptablesForward(ch) {
				found = append(found, ch)
			}
		}
	}
	return found, nil
}

func isIptablesForward(ch *nftables.Chain) bool {
	return ch.Table.Name == "filter" && ch.Name == "FORWARD" && ch.Hooknum != nil &&
		(ch.Table.Family == nftables.TableFamilyIPv4 || ch.Table.Family == nftables.TableFamilyIPv6)
}

// passFirewalls has iptables' FORWARD chains accept the packets of pods.
func (n *Network) passFirewalls(ctx context.Context) error {
	return n.nft(ctx, func(c *firewall) error {
		chains, err := iptablesForward(c)
		if err != nil {
			return err
		}
		for _, ch := range chains {
			rules, err := c.GetRules(ch.Table, ch)
			if err != nil {
				return fmt.Errorf("list rules of chain FORWARD: %w", err)
			}
			if len(rules) == 0 && !drops(ch) {
				continue
			}
			have := map[expr.MetaKey]bool{}
			for _, r := range rules {
				if key, ok := n.acceptedBy(r); ok && n.isOurs(r) {
					have[key] = true
				}
			}
			for _, key := range []expr.MetaKey{expr.MetaKeyOIFNAME, expr.MetaKeyIIFNAME} {
				if !have[key] {
					c.InsertRule(n.acceptRule(ch, key))
				}
			}
		}
		return c.Flush()
	})
}

// unpassFirewalls takes away what passFirewalls has inserted.
func (n *Network) unpassFirewalls(ctx context.Context) error {
	return n.nft(ctx, func(c *firewall) error {
		chains, err := iptablesForward(c)
		if err != nil {
			return err
		}
		for _, ch := range chains {
			rules, err := c.GetRules(ch.Table, ch)
			if err != nil {
				return fmt.Errorf("list rules of chain FORWARD: %w", err)
			}
			for _, r := range rules {
				if !n.isOurs(r) {
					continue
				}
				if err := c.DelRule(&nftables.Rule{Table: ch.Table, Chain: ch, Handle: r.Handle}); err != nil {
					return fmt.Errorf("delete from chain FORWARD: %w", err)
				}
			}
		}
		return c.Flush()
	})
}

// acceptRule accepts what comes by the bridge or leaves by it, and has the bridge's name as its comment.
func (n *Network) acceptRule(ch *nftables.Chain, key expr.MetaKey) *nftables.Rule {
	name := append([]byte(n.opts.Bridge), 0)
	return &nftables.Rule{
		Table: ch.Table, Chain: ch,
		Exprs: []expr.Any{
			&expr.Meta{Key: key, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name},
			&expr.Counter{},
			&expr.Verdict{Kind: expr.VerdictAccept},
		},
		UserData: userdata.AppendString(nil, userdata.TypeComment, n.opts.Bridge),
	}
}

func (n *Network) isOurs(r *nftables.Rule) bool {
	comment, ok := userdata.GetString(r.UserData, userdata.TypeComment)
	return ok && comment == n.opts.Bridge
}

// acceptedBy says by which name of a link a rule accepts the bridge's packets, if it does.
func (n *Network) acceptedBy(r *nftables.Rule) (key expr.MetaKey, ok bool) {
	compared, accepts := false, false
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Meta:
			key = e.Key
		case *expr.Cmp:
			compared = compared || e.Op == expr.CmpOpEq && string(bytes.TrimRight(e.Data, "\x00")) == n.opts.Bridge
		case *expr.Verdict:
			accepts = e.Kind == expr.VerdictAccept
		}
	}
	return key, compared && accepts
}

func drops(ch *nftables.Chain) bool {
	return ch.Policy != nil && *ch.Policy == nftables.ChainPolicyDrop
}
