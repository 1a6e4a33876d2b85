package rig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime"
)

// Bridge returns the name of the bridge of the rig's pods, and of their nftables table.
func (r *Rig) Bridge() string { return runtime.BridgeOf(r.RunDir()) }

// links returns the bridge, its ports, and the links that are named after a pod.
func (r *Rig) links() ([]netlink.Link, error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	bridge := -1
	for _, l := range all {
		if l.Attrs().Name == r.Bridge() {
			bridge = l.Attrs().Index
		}
	}
	marks := r.podMarks()
	return slices.DeleteFunc(all, func(l netlink.Link) bool {
		a := l.Attrs()
		return a.Index != bridge && a.MasterIndex != bridge && !containsAny(a.Alias, marks)
	}), nil
}

// Elements returns the elements of the host port maps as text, if there is a table.
func (r *Rig) Elements() ([]string, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	tables, err := r.tables(c)
	var found []string
	for _, table := range tables {
		sets, setsErr := c.GetSets(table)
		err = errors.Join(err, setsErr)
		for _, set := range sets {
			elements, elementsErr := c.GetSetElements(set)
			err = errors.Join(err, elementsErr)
			for _, e := range elements {
				found = append(found, fmt.Sprintf("element of map %s: %x to %x", set.Name, e.Key, e.Val))
			}
		}
	}
	return found, err
}

func (r *Rig) tables(c *nftables.Conn) ([]*nftables.Table, error) {
	all, err := c.ListTables()
	if err != nil {
		return nil, fmt.Errorf("list nftables tables: %w", err)
	}
	return slices.DeleteFunc(all, func(t *nftables.Table) bool { return t.Name != r.Bridge() }), nil
}

// PodLinks returns the names of the pods' links, without the bridge.
func (r *Rig) PodLinks() ([]string, error) {
	links, err := r.links()
	var names []string
	for _, l := range links {
		if l.Attrs().Name != r.Bridge() {
			names = append(names, l.Attrs().Name)
		}
	}
	return names, err
}

// network returns what is left of the pod network: links, tables, and rules in other tables.
func (r *Rig) network() ([]string, error) {
	links, err := r.links()
	var left []string
	for _, l := range links {
		left = append(left, fmt.Sprintf("link %s %s", l.Attrs().Name, l.Attrs().Alias))
	}
	c, connErr := nftables.New()
	if connErr != nil {
		return left, errors.Join(err, connErr)
	}
	tables, tablesErr := r.tables(c)
	for _, t := range tables {
		left = append(left, "nftables table "+t.Name)
	}
	rules, rulesErr := r.rules(c)
	for _, rule := range rules {
		left = append(left, fmt.Sprintf("rule %d of chain %s in table %s", rule.Handle, rule.Chain.Name, rule.Table.Name))
	}
	return left, errors.Join(err, tablesErr, rulesErr)
}

// rules returns the rules in iptables' FORWARD chains that name the bridge.
func (r *Rig) rules(c *nftables.Conn) ([]*nftables.Rule, error) {
	chains, err := c.ListChains()
	if err != nil {
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	var found []*nftables.Rule
	for _, chain := range chains {
		if chain.Table.Name != "filter" || chain.Name != "FORWARD" {
			continue
		}
		rules, rulesErr := c.GetRules(chain.Table, chain)
		err = errors.Join(err, rulesErr)
		for _, rule := range rules {
			if strings.Contains(string(rule.UserData), r.Bridge()) {
				found = append(found, rule)
			}
		}
	}
	return found, err
}

// removeNetwork removes what network returns.
func (r *Rig) removeNetwork() error {
	links, err := r.links()
	for _, l := range links {
		if delErr := netlink.LinkDel(l); delErr != nil && !errors.Is(delErr, unix.ENODEV) {
			err = errors.Join(err, fmt.Errorf("remove link %s: %w", l.Attrs().Name, delErr))
		}
	}
	c, connErr := nftables.New()
	if connErr != nil {
		return errors.Join(err, connErr)
	}
	tables, tablesErr := r.tables(c)
	for _, t := range tables {
		c.DelTable(t)
	}
	rules, rulesErr := r.rules(c)
	for _, rule := range rules {
		rulesErr = errors.Join(rulesErr, c.DelRule(rule))
	}
	return errors.Join(err, tablesErr, rulesErr, c.Flush())
}
