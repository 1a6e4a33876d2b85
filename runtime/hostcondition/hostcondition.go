// Package hostcondition watches the conditions of the host that pods wait for before they start: paths, mounts, the network, host
// names and the clock. It sends no packets except DNS queries, changes nothing on the host, and reads nothing of a path but whether
// it exists.
package hostcondition

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

const (
	// pathInterval is the interval at which a path is checked if the kernel reports nothing. inotify(7) does not report changes of
	// /proc and /sys, of network file systems, and behind symbolic links.
	pathInterval = 10 * time.Second
	// dnsInterval is the interval at which a host name is resolved.
	dnsInterval = 3 * time.Second
	// dnsTimeout bounds one attempt to resolve a host name.
	dnsTimeout = 5 * time.Second
	// clockInterval is the interval at which the state of the clock is read. The kernel does not report its changes.
	clockInterval = 2 * time.Second
	// maxFollowers is the number of waits that follow what the kernel reports. Each of them blocks a thread in poll(2), and has several
	// open files. The Go runtime ends the process when it has 10,000 threads.
	maxFollowers = 64
	// crowdedInterval is the interval at which a condition is checked when there are that many.
	crowdedInterval = 5 * time.Second
)

// Host watches the conditions of this host. It is safe for concurrent use.
type Host struct {
	recheck time.Duration // interval at which a path is checked, in any case
	crowded time.Duration // interval at which conditions are checked when followers is full
	lookup  func(ctx context.Context, host string) ([]string, error)
	clock   func() (status int32, err error) // [unix.Timex.Status]
	online  func() (unmet string, err error)

	followers chan struct{} // has a value for each wait that follows what the kernel reports
}

// New returns the conditions of the host in the network namespace of the process.
func New() *Host {
	return &Host{
		recheck: pathInterval, crowded: crowdedInterval, lookup: net.DefaultResolver.LookupHost, clock: clockStatus, online: online,
		followers: make(chan struct{}, maxFollowers),
	}
}

// WaitFor returns nil when a condition is met, and the error of ctx when that ends. Before each time that it waits, it calls report with
// why the condition is not met.
func (h *Host) WaitFor(ctx context.Context, c spec.WaitCondition, report func(unmet string)) error {
	var err error
	switch c.Kind {
	case spec.WaitPath:
		err = h.follow(ctx, report, func() error { return waitForPath(ctx, c.Object, h.recheck, report) },
			func() (string, error) { return pathUnmet(c.Object), nil })
	case spec.WaitMount:
		err = h.follow(ctx, report, func() error { return waitForMount(ctx, c.Object, report) },
			func() (string, error) { return mountUnmet(c.Object) })
	case spec.WaitNetworkOnline:
		err = h.follow(ctx, report, func() error { return h.waitForNetwork(ctx, report) }, h.online)
	case spec.WaitDNS:
		err = repeat(ctx, dnsInterval, report, func() (string, error) { return h.resolve(ctx, c.Object), nil })
	case spec.WaitTimeSynced:
		err = repeat(ctx, clockInterval, report, func() (string, error) { return h.unsynchronized(), nil })
	default:
		return fmt.Errorf("wait for %s: unknown condition", c)
	}
	if err != nil {
		return fmt.Errorf("wait for %s: %w", c, err)
	}
	return nil
}

// follow waits for a condition with a function that follows what the kernel reports. If there are too many of these, it repeats check.
func (h *Host) follow(ctx context.Context, report func(string), events func() error, check func() (unmet string, err error)) error {
	select {
	case h.followers <- struct{}{}:
		defer func() { <-h.followers }()
		return events()
	default:
		return repeat(ctx, h.crowded, report, check)
	}
}

// repeat calls check at an interval until it returns "" or an error.
func repeat(ctx context.Context, interval time.Duration, report func(string), check func() (unmet string, err error)) error {
	next := time.NewTicker(interval)
	defer next.Stop()
	for {
		unmet, err := check()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case unmet == "":
			return nil
		}
		report(unmet)
		select {
		case <-next.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unsynchronized returns why the clock is not synchronized; empty if it is (adjtimex(2)).
func (h *Host) unsynchronized() string {
	switch status, err := h.clock(); {
	case err != nil:
		return "read the state of the clock: " + err.Error()
	case status&unix.STA_UNSYNC != 0:
		return "clock not synchronized"
	}
	return ""
}

func clockStatus() (int32, error) {
	var t unix.Timex
	_, err := unix.Adjtimex(&t)
	return t.Status, err
}
