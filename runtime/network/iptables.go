package network

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
)

// A forwarded packet passes the base chains of all tables in the forward hook. A drop in one of them is final, whatever
// another chain accepts. Docker and ufw set the policy of the FORWARD chain of iptables to drop. If this chain exists,
// two rules that accept packets from and to the bridge are inserted at its head. The chain "forward" of the inet table
// then filters packets to pods. The rules have the form that iptables itself writes, since iptables cannot list tables
// with other expressions.

// iptablesForward returns the FORWARD chains of iptables-nft that exist, for IPv4 and IPv6.
func iptablesForward(c *nftables.Conn) ([]*nftables.Chain, error) {
	var found []*nftables.Chain
	for _, f := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6} {
		chains, err := c.ListChainsOfTableFamily(f)
		if err != nil {
			return nil, fmt.Errorf("list iptables chains: %w", err)
		}
		for _, ch := range chains {
			if isIptablesForward(ch) {
				found = append(found, ch)
			}
		}
	}
	return found, nil
}

// isIptablesForward reports whether a chain is a FORWARD chain of iptables-nft.
func isIptablesForward(ch *nftables.Chain) bool {
	return ch.Table.Name == "filter" && ch.Name == "FORWARD" && ch.Hooknum != nil &&
		(ch.Table.Family == nftables.TableFamilyIPv4 || ch.Table.Family == nftables.TableFamilyIPv6)
}

// changeForward changes the FORWARD chains of iptables in one transaction. It calls change for each of them, with its rules.
func (r *ruleset) changeForward(ctx context.Context, change func(*nftables.Conn, *nftables.Chain, []*nftables.Rule) error) error {
	return r.do(ctx, func(c *nftables.Conn) error {
		chains, err := iptablesForward(c)
		if err != nil {
			return err
		}
		for _, ch := range chains {
			rules, err := c.GetRules(ch.Table, ch)
			if err != nil {
				return fmt.Errorf("list rules of chain FORWARD: %w", err)
			}
			if err := change(c, ch, rules); err != nil {
				return err
			}
		}
		return c.Flush()
	})
}

// AcceptForwarded inserts rules that accept packets of pods into the FORWARD chains of iptables.
func (r *ruleset) AcceptForwarded(ctx context.Context) error {
	return r.changeForward(ctx, func(c *nftables.Conn, ch *nftables.Chain, rules []*nftables.Rule) error {
		if len(rules) == 0 && !dropsByDefault(ch) {
			return nil
		}
		have := map[expr.MetaKey]bool{}
		for _, rule := range rules {
			if key, ok := acceptedBy(rule, r.bridge); ok && r.isOwn(rule) {
				have[key] = true
			}
		}
		for _, key := range []expr.MetaKey{expr.MetaKeyOIFNAME, expr.MetaKeyIIFNAME} {
			if !have[key] {
				c.InsertRule(r.acceptRule(ch, key))
			}
		}
		return nil
	})
}

// deleteForwardRules deletes the rules that AcceptForwarded has inserted.
func (r *ruleset) deleteForwardRules(ctx context.Context) error {
	return r.changeForward(ctx, func(c *nftables.Conn, ch *nftables.Chain, rules []*nftables.Rule) error {
		for _, rule := range rules {
			if !r.isOwn(rule) {
				continue
			}
			if err := c.DelRule(&nftables.Rule{Table: ch.Table, Chain: ch, Handle: rule.Handle}); err != nil {
				return fmt.Errorf("delete rule from chain FORWARD: %w", err)
			}
		}
		return nil
	})
}

// acceptRule accepts packets that enter or leave by the bridge. Its comment is the bridge's name.
func (r *ruleset) acceptRule(ch *nftables.Chain, key expr.MetaKey) *nftables.Rule {
	name := append([]byte(r.bridge), 0)
	return &nftables.Rule{
		Table: ch.Table, Chain: ch,
		Exprs: []expr.Any{
			&expr.Meta{Key: key, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name},
			&expr.Counter{},
			&expr.Verdict{Kind: expr.VerdictAccept},
		},
		UserData: userdata.AppendString(nil, userdata.TypeComment, r.bridge),
	}
}

func (r *ruleset) isOwn(rule *nftables.Rule) bool {
	comment, ok := userdata.GetString(rule.UserData, userdata.TypeComment)
	return ok && comment == r.bridge
}

// acceptedBy returns the key (input or output link) by which a rule accepts packets of the bridge.
func acceptedBy(rule *nftables.Rule, bridge string) (key expr.MetaKey, ok bool) {
	compared, accepts := false, false
	for _, e := range rule.Exprs {
		switch e := e.(type) {
		case *expr.Meta:
			key = e.Key
		case *expr.Cmp:
			compared = compared || e.Op == expr.CmpOpEq && string(bytes.TrimRight(e.Data, "\x00")) == bridge
		case *expr.Verdict:
			accepts = e.Kind == expr.VerdictAccept
		}
	}
	return key, compared && accepts
}

// dropsByDefault reports whether the policy of a chain is drop.
func dropsByDefault(ch *nftables.Chain) bool {
	return ch.Policy != nil && *ch.Policy == nftables.ChainPolicyDrop
}
