//go:build e2e

package network

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
)

// With the policy drop in FORWARD, as set by Docker and ufw, pods are reachable, also after the chain was flushed. Remove
// deletes only the network's own rules.
func TestForwardDrop(t *testing.T) {
	w := newWorld(t)
	c, err := w.namespace.Nftables()
	check(t, err)
	defer func() { check(t, c.CloseLasting()) }()
	var chains []*nftables.Chain
	for _, f := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6} {
		chains = append(chains, addDropChain(c, &nftables.Table{Family: f, Name: "filter"}, "FORWARD"))
	}
	check(t, c.Flush())
	web := w.pod("web", tcp(8080, 80))
	other := w.pod("other")
	serve(t, web.NetnsPath, "web", "tcp", ":80")
	serve(t, w.outside, "out", "tcp", ":1234")
	reach := func(when string) {
		wantAnswer(t, "host port "+when, w.outside, "tcp", host4+":8080", "web", "")
		wantAnswer(t, "host port "+when, w.outside, "tcp", "["+host6+"]:8080", "web", "")
		wantAnswer(t, "outside "+when, web.NetnsPath, "tcp", outside4+":1234", "out", "")
		wantAnswer(t, "pod "+when, other.NetnsPath, "tcp", web.IPs[0].String()+":80", "web", "")
	}
	reach("with FORWARD DROP")
	for range 2 {
		check(t, w.Reconcile(t.Context(), []string{"web", "other"}))
	}
	for _, ch := range chains {
		rules, err := c.GetRules(ch.Table, ch)
		check(t, err)
		if len(rules) != 3 {
			t.Errorf("chain FORWARD has %d rules, want 3", len(rules))
		}
		c.FlushChain(ch)
	}
	check(t, c.Flush())
	if got, err := w.Diagnose(t.Context()); len(got) > 0 || err != nil {
		t.Errorf("findings: %v, %v", got, err)
	}
	w.pod("third")
	reach("after a flush of FORWARD")
	addForeignRule(c, chains[0])
	check(t, c.Flush())
	w.removeAll()
	for i, ch := range chains {
		rules, err := c.GetRules(ch.Table, ch)
		check(t, err)
		if len(rules) != 1-i {
			t.Errorf("chain FORWARD has %d rules after Remove, want %d", len(rules), 1-i)
		}
	}
}

// addDropChain adds a chain as iptables does, with a foreign rule and the policy drop.
func addDropChain(c *Nftables, t *nftables.Table, name string) *nftables.Chain {
	policy := nftables.ChainPolicyDrop
	c.AddTable(t)
	ch := c.AddChain(&nftables.Chain{
		Name: name, Table: t, Type: nftables.ChainTypeFilter, Policy: &policy,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	addForeignRule(c, ch)
	return ch
}

func addForeignRule(c *Nftables, ch *nftables.Chain) {
	c.AddRule(&nftables.Rule{
		Table: ch.Table, Chain: ch, Exprs: []expr.Any{&expr.Counter{}},
		UserData: userdata.AppendString(nil, userdata.TypeComment, "foreign"),
	})
}

// Diagnose reports what Setup does not correct.
func TestDiagnose(t *testing.T) {
	w := newWorld(t)
	if got, err := w.Diagnose(t.Context()); len(got) > 0 || err != nil {
		t.Fatalf("findings on a new host: %v, %v", got, err)
	}
	w.pod("web")
	c, err := w.namespace.Nftables()
	check(t, err)
	defer func() { check(t, c.CloseLasting()) }()
	addDropChain(c, &nftables.Table{Family: nftables.TableFamilyINet, Name: "site"}, "forward")
	check(t, c.Flush())
	inside := netip.PrefixFrom(w.subnets[0].Addr(), 25)
	in(t, w.host, func() error {
		return errors.Join(setSysctl("ipv4/ip_forward", "0"), addRoute(inside.String(), outside4))
	})
	got, err := w.Diagnose(t.Context())
	check(t, err)
	want := []string{"net.ipv4.ip_forward", "chain inet site forward", "overlaps " + inside.String()}
	for i, f := range got {
		if i >= len(want) || !strings.Contains(f.Problem, want[i]) || f.Hint == "" {
			t.Errorf("unexpected finding %+v", f)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d findings, want %d", len(got), len(want))
	}
	site := &nftables.Table{Family: nftables.TableFamilyINet, Name: "site"}
	c.InsertRule(&nftables.Rule{Table: site, Chain: &nftables.Chain{Name: "forward", Table: site}, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: append([]byte(DefaultBridge), 0)},
		&expr.Verdict{Kind: expr.VerdictAccept},
	}})
	check(t, c.Flush())
	again, err := w.Diagnose(t.Context())
	check(t, err)
	if diff := cmp.Diff(len(got)-1, len(again)); diff != "" {
		t.Errorf("findings after adding a rule: %v", again)
	}
}
