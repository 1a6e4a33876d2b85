package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/namespace"
)

// Finding is a condition of the host that breaks the pod network.
type Finding struct {
	// Problem is what is wrong. Hint is what the administrator can do about it, in the imperative.
	Problem, Hint string
}

// diagnosis is the network to check.
type diagnosis struct {
	Namespace Namespace // the host's
	Bridge    string
	Subnets   []netip.Prefix
	InUse     bool // a pod has an address
}

// probeTimeout bounds the run of another program.
const probeTimeout = 5 * time.Second

// diagnose checks the host for conditions that break the pod network. It changes nothing: it tries the kernel's features in a
// temporary network namespace. Errors of checks that could not run are joined, and the findings of the other checks are
// returned beside them.
func diagnose(ctx context.Context, t diagnosis) ([]Finding, error) {
	var all []Finding
	var errs []error
	for _, check := range []func(context.Context) ([]Finding, error){
		t.kernelSupport, t.forwarding, t.nftablesFirewalls, t.legacyFirewalls, t.overlaps,
	} {
		found, err := check(ctx)
		all, errs = append(all, found...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return all, fmt.Errorf("diagnose network: %w", err)
	}
	return all, nil
}

// kernelSupport creates the links and the rules of a pod network in a temporary network namespace.
func (t diagnosis) kernelSupport(ctx context.Context) ([]Finding, error) {
	var found []Finding
	missing := func(err error, what, option string) {
		found = append(found, Finding{
			Problem: fmt.Sprintf("kernel does not support %s: %v", what, err),
			Hint:    fmt.Sprintf("load the kernel module or use a kernel with %s. Pods with hostNetwork = true do not need it", option),
		})
	}
	err := namespace.OnOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("create network namespace: %w", err)
		}
		h, err := Namespace{}.Netlink()
		if err != nil {
			return err
		}
		defer h.Close()
		attrs := netlink.NewLinkAttrs()
		attrs.Name = t.Bridge
		if err := h.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			missing(err, "bridges", "CONFIG_BRIDGE")
		}
		pair := netlink.NewLinkAttrs()
		pair.Name = "probe0"
		veth := netlink.NewVeth(pair)
		veth.PeerName = "probe1"
		if err := h.LinkAdd(veth); err != nil {
			missing(err, "veth pairs", "CONFIG_VETH")
		}
		probe := newRuleset(Namespace{}, t.Bridge, slog.New(slog.DiscardHandler))
		defer func() { _ = probe.Close() }()
		if err := probe.Write(ctx, nil, candidateSubnets[:1]); err != nil {
			missing(err, "nftables with NAT",
				"CONFIG_NF_TABLES_INET, CONFIG_NFT_NAT, CONFIG_NFT_MASQ, CONFIG_NFT_REJECT_INET and CONFIG_NFT_FIB_INET")
		}
		guarded, err := probe.WriteGuard(ctx, nil)
		if !guarded {
			found = append(found, Finding{
				Problem: fmt.Sprintf("pods can spoof addresses of other pods: kernel does not support nftables for bridges: %v", err),
				Hint: "use a kernel with CONFIG_NF_TABLES_BRIDGE, or drop NET_RAW in containers: securityContext.capabilities.drop = " +
					"[\"NET_RAW\"]",
			})
		}
		return nil
	})
	return found, err
}

// forwarding finds sysctls that another program has reset, or that Setup cannot set.
func (t diagnosis) forwarding(context.Context) ([]Finding, error) {
	var found []Finding
	err := t.Namespace.Do(func() error {
		settings := []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"}
		if len(t.Subnets) < 2 {
			settings = settings[:1]
		}
		for _, s := range settings {
			value, err := readSysctl(s)
			if err != nil {
				return err
			}
			name := "net." + strings.ReplaceAll(s, "/", ".")
			switch {
			case value != "0":
			case t.InUse:
				found = append(found, Finding{
					Problem: fmt.Sprintf("pods cannot reach other networks: another program has set sysctl %s to 0", name),
					Hint:    fmt.Sprintf("run sysctl -w %s=1, and check /etc/sysctl.conf and /etc/sysctl.d", name),
				})
			case unix.Access(sysctlPath(s), unix.W_OK) != nil:
				found = append(found, Finding{
					Problem: fmt.Sprintf("sysctl %s is 0 and read-only", name),
					Hint:    fmt.Sprintf("set %s=1 on the host, since /proc/sys is read-only in this container", name),
				})
			}
		}
		return nil
	})
	return found, err
}

// nftablesFirewalls finds nftables chains that drop packets of pods. The FORWARD chains of iptables are left out: Setup
// inserts rules there.
func (t diagnosis) nftablesFirewalls(ctx context.Context) ([]Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := t.Namespace.Nftables() // a connection of its own: it may be called during a change of the rules
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.CloseLasting() }()
	chains, err := c.ListChains()
	if err != nil {
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	var found []Finding
	for _, ch := range chains {
		families := []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6, nftables.TableFamilyINet}
		switch {
		case ch.Hooknum == nil || *ch.Hooknum != *nftables.ChainHookForward || !slices.Contains(families, ch.Table.Family):
			continue
		case ch.Table.Name == t.Bridge, isIptablesForward(ch):
			continue
		}
		firewalld := ch.Table.Name == "firewalld" // firewalld's chain accepts by default, and rejects in its last rule
		if !dropsByDefault(ch) && !firewalld {
			continue
		}
		if passes, err := t.hasAccept(c, chains, ch.Table); err != nil {
			return found, err
		} else if !passes {
			found = append(found, t.blockedBy(ch, firewalld))
		}
	}
	return found, nil
}

// hasAccept reports whether a rule of the table accepts packets of the bridge.
func (t diagnosis) hasAccept(c *Nftables, chains []*nftables.Chain, table *nftables.Table) (bool, error) {
	for _, ch := range chains {
		if ch.Table.Name != table.Name || ch.Table.Family != table.Family {
			continue
		}
		rules, err := c.GetRules(ch.Table, ch)
		if err != nil {
			return false, fmt.Errorf("list rules of chain %s: %w", ch.Name, err)
		}
		for _, r := range rules {
			if _, ok := acceptedBy(r, t.Bridge); ok {
				return true, nil
			}
		}
	}
	return false, nil
}

func (t diagnosis) blockedBy(ch *nftables.Chain, firewalld bool) Finding {
	if firewalld {
		return Finding{
			Problem: "firewalld rejects packets of pods",
			Hint:    fmt.Sprintf("run firewall-cmd --permanent --zone=trusted --add-interface=%s && firewall-cmd --reload", t.Bridge),
		}
	}
	name := map[nftables.TableFamily]string{
		nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6", nftables.TableFamilyINet: "inet",
	}[ch.Table.Family]
	chain := fmt.Sprintf("%s %s %s", name, ch.Table.Name, ch.Name)
	return Finding{
		Problem: fmt.Sprintf("nftables chain %s drops packets of pods by its policy", chain),
		Hint: fmt.Sprintf("run nft insert rule %[1]s iifname %[2]q accept; nft insert rule %[1]s oifname %[2]q accept; and add both "+
			"rules to /etc/nftables.conf",
			chain, t.Bridge),
	}
}

// legacyFirewalls checks the FORWARD chains of iptables-legacy, which are not visible through nftables.
func (t diagnosis) legacyFirewalls(ctx context.Context) ([]Finding, error) {
	var found []Finding
	for _, v := range []struct{ names, program string }{
		{"/proc/thread-self/net/ip_tables_names", "iptables-legacy"},
		{"/proc/thread-self/net/ip6_tables_names", "ip6tables-legacy"},
	} {
		var rules []byte
		var listErr error
		err := t.Namespace.Do(func() error {
			names, err := os.ReadFile(v.names)
			if err != nil || !slices.Contains(strings.Fields(string(names)), "filter") {
				return nil // no such file, or no such table: nothing filters
			}
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			rules, listErr = exec.CommandContext(ctx, v.program, "-S", "FORWARD").Output() // one of two names
			return nil
		})
		if err != nil {
			return found, err
		}
		if f, bad := t.legacyFinding(v.program, string(rules), listErr); bad {
			found = append(found, f)
		}
	}
	return found, nil
}

// legacyFinding evaluates the output of "iptables-legacy -S FORWARD". Empty output means that there are no rules.
func (t diagnosis) legacyFinding(program, rules string, listErr error) (Finding, bool) {
	hint := fmt.Sprintf("run %[1]s -I FORWARD -i %[2]s -j ACCEPT; %[1]s -I FORWARD -o %[2]s -j ACCEPT", program, t.Bridge)
	if listErr != nil {
		return Finding{
			Problem: fmt.Sprintf("iptables-legacy has a filter table, which may drop packets of pods, and its rules cannot be listed: %v",
				listErr),
			Hint: "install " + program + " and run podstead doctor again, or " + hint,
		}, true
	}
	blocks := false
	for line := range strings.Lines(rules) {
		words := strings.Fields(line)
		if slices.Contains(words, t.Bridge) && slices.Contains(words, "ACCEPT") {
			return Finding{}, false
		}
		blocks = blocks || slices.Equal(words, []string{"-P", "FORWARD", "DROP"}) ||
			slices.Contains(words, "-A") && (slices.Contains(words, "DROP") || slices.Contains(words, "REJECT"))
	}
	return Finding{Problem: "FORWARD chain of iptables-legacy drops packets of pods", Hint: hint}, blocks
}

// overlaps finds addresses and routes of the host in the pod subnets.
func (t diagnosis) overlaps(context.Context) ([]Finding, error) {
	h, err := t.Namespace.Netlink()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	used, err := usedPrefixes(h, t.Bridge)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, s := range t.Subnets {
		for _, u := range used {
			if s.Overlaps(u) {
				found = append(found, Finding{
					Problem: fmt.Sprintf("pod subnet %s overlaps %s, which has an address of the host or a route", s, u),
					Hint:    "stop all pods and start them again. Free subnets are then chosen, unless [network] names subnets",
				})
			}
		}
	}
	return found, nil
}
