//go:build e2e

package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/google/nftables"

	"github.com/podstead/podstead/spec"
)

var errFault = errors.New("injected fault")

// faultAt makes the step with a number fail, or with crash, panic. Steps of workers do not count. It reports whether
// there is such a step.
func (w *world) faultAt(number int, crash bool, do func()) (name string, reached bool) {
	w.t.Helper()
	count := 0
	w.fault = func(step string) error {
		if step == "remove link" {
			return nil
		}
		if count++; count-1 != number {
			return nil
		}
		name, reached = step, true
		if crash {
			panic(errFault)
		}
		return errFault
	}
	defer func() {
		if p := recover(); p != nil && p != errFault { //nolint:errorlint // it is that very value
			panic(p)
		}
		eventually(w.t, w.workersIdle)
		w.fault = nil
	}()
	do()
	return name, reached
}

func (w *world) workersIdle() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.removals) > 0 || w.busy[removeLinks] {
		return errors.New("links are being removed")
	}
	return nil
}

// After a crash at any step of Setup, a repeated Setup completes it, or Reconcile removes it.
func TestCrashInSetup(t *testing.T) {
	w := newWorld(t)
	for step := 0; ; step++ {
		r := Request{
			UID: "u" + strconv.Itoa(step), PodName: "web", NetnsPath: w.pin("p" + strconv.Itoa(step)),
			Ports: []Port{tcp(8080, 80), {HostPort: 53, ContainerPort: 53, Protocol: spec.ProtocolUDP}},
		}
		name, reached := w.faultAt(step, true, func() { _, _ = w.try(r) })
		w.restart()
		if step%2 == 0 || !reached {
			check(t, w.Reconcile(t.Context(), []string{r.UID}))
			p, err := w.try(r)
			if err != nil {
				t.Fatalf("after a crash before %q: %v", name, err)
			}
			serve(t, p.NetnsPath, r.UID, "tcp", ":80")
			wantAnswer(t, "after a crash before "+name, w.outside, "tcp", host4+":8080", r.UID, "")
		}
		check(t, w.Reconcile(t.Context(), nil))
		eventually(t, w.leftovers)
		w.restart() // so that the next Setup creates the base again
		if !reached {
			if step < 8 {
				t.Errorf("only %d steps", step)
			}
			return
		}
	}
}

// A failed first Setup leaves nothing. A failed repeated Setup leaves the pod as it was.
func TestFailureInSetup(t *testing.T) {
	w := newWorld(t)
	for step := 0; ; step++ {
		r := Request{
			UID: "u" + strconv.Itoa(step), PodName: "web", NetnsPath: w.pin("p" + strconv.Itoa(step)), Ports: []Port{tcp(8080, 80)},
		}
		name, reached := w.faultAt(step, false, func() {
			if _, err := w.try(r); err != nil && !errors.Is(err, errFault) {
				t.Errorf("Setup: %v", err)
			}
		})
		if !reached {
			return
		}
		if err := w.leftovers(); err != nil {
			t.Errorf("after a failure in %q: %v", name, err)
		}
		if peers := w.Peers(); len(peers) > 0 {
			t.Errorf("after a failure in %q the peers are %v", name, peers)
		}
		p, err := w.try(r)
		check(t, err)
		serve(t, p.NetnsPath, r.UID, "tcp", ":80")
		w.faultAt(step, false, func() { _, _ = w.try(r) })
		wantAnswer(t, "after a repeated Setup failed in "+name, w.outside, "tcp", host4+":8080", r.UID, "")
		check(t, w.Teardown(t.Context(), r.UID))
		eventually(t, w.leftovers)
		w.restart()
	}
}

// After a crash at any step of Teardown, Reconcile removes the pod's network.
func TestCrashInTeardown(t *testing.T) {
	w := newWorld(t)
	for step := 0; ; step++ {
		uid := "u" + strconv.Itoa(step)
		w.pod(uid, tcp(8080, 80))
		_, reached := w.faultAt(step, true, func() { _ = w.Teardown(t.Context(), uid) })
		if !reached { // the worker crashes
			eventually(t, w.leftovers)
			w.pod(uid, tcp(8080, 80))
			w.fault = func(step string) error {
				return map[string]error{"remove link": errFault}[step]
			}
			check(t, w.Teardown(t.Context(), uid))
			eventually(t, w.workersIdle)
			if err := w.leftovers(); err == nil {
				t.Error("the lease of a link that could not be removed is gone")
			}
		}
		w.restart()
		check(t, w.Reconcile(t.Context(), nil))
		eventually(t, w.leftovers)
		if !reached {
			return
		}
	}
}

// After a failed step of Teardown, a second Teardown completes it, also while other pods use the network. A Setup before
// that does not forward a port to the old pod.
func TestFailureInTeardown(t *testing.T) {
	w := newWorld(t)
	w.pod("other")
	for i := 0; ; i++ { // each step twice
		uid, other := "u"+strconv.Itoa(i), "other"+strconv.Itoa(i)
		w.pod(uid, tcp(8080, 80))
		name, reached := w.faultAt(i/2, false, func() { _ = w.Teardown(t.Context(), uid) })
		if i%2 == 0 {
			check(t, w.Teardown(t.Context(), uid))
			eventually(t, w.workersIdle)
			if left := w.elements(); len(left) > 0 {
				t.Errorf("Teardown after a failure in %q left host ports: %v", name, left)
			}
		}
		p := w.pod(other, tcp(8080, 80))
		serve(t, p.NetnsPath, other, "tcp", ":80")
		wantAnswer(t, "after a failure in "+name, w.outside, "tcp", host4+":8080", other, "")
		check(t, w.Teardown(t.Context(), other))
		check(t, w.Teardown(t.Context(), uid))
		if left := w.elements(); len(left) > 0 {
			t.Errorf("host ports are left after a failure in %q: %v", name, left)
		}
		if !reached {
			break
		}
	}
	check(t, w.Teardown(t.Context(), "other"))
	eventually(t, w.leftovers)
}

// elements returns the elements of both port maps.
func (w *world) elements() (all []nftables.SetElement) {
	w.t.Helper()
	c, err := w.namespace.Nftables()
	check(w.t, err)
	defer func() { check(w.t, c.CloseLasting()) }()
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: w.Network.opts.Bridge}
	for name, address := range map[string]nftables.SetDatatype{"ports4": nftables.TypeIPAddr, "ports6": nftables.TypeIP6Addr} {
		elements, err := c.GetSetElements(&nftables.Set{
			Table: t, Name: name, IsMap: true, Concatenation: true,
			KeyType:  nftables.MustConcatSetType(address, nftables.TypeInetProto, nftables.TypeInetService),
			DataType: nftables.MustConcatSetType(address, nftables.TypeInetService),
		})
		check(w.t, err)
		all = append(all, elements...)
	}
	return all
}

// Canceling the context stops Setup, which still cleans up.
func TestSetupCanceled(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.fault = func(step string) error {
		if step == "publish ports" {
			cancel()
		}
		return nil
	}
	r := Request{UID: "u", PodName: "web", NetnsPath: w.pin("u"), Ports: []Port{tcp(8080, 80)}}
	if _, err := w.Setup(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("Setup: %v, want context.Canceled", err)
	}
	eventually(t, w.leftovers)
	r.NetnsPath = filepath.Join(w.dir, "missing")
	if _, err := w.Setup(t.Context(), r); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Setup without a namespace: %v", err)
	}
	eventually(t, w.leftovers)
}

// Pods that are set up concurrently have distinct addresses, get the same ones again, and leave nothing.
func TestConcurrentSetup(t *testing.T) {
	w := newWorld(t)
	const pods = 50
	paths := make([]string, pods)
	for i := range paths {
		paths[i] = w.pin(strconv.Itoa(i))
	}
	seen := map[netip.Addr]string{}
	var mu sync.Mutex
	for round := range 2 {
		var all sync.WaitGroup
		for i, path := range paths {
			all.Go(func() {
				uid := fmt.Sprintf("%d-%d", round, i)
				r := Request{UID: uid, PodName: strconv.Itoa(i), NetnsPath: path, Ports: []Port{tcp(uint16(20000+i), 80)}}
				result, err := w.Setup(t.Context(), r)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, ip := range result.IPs {
					if other := seen[ip]; other != "" && other != r.PodName {
						t.Errorf("%s and %s both have address %s", other, r.PodName, ip)
					}
					seen[ip] = r.PodName
				}
				mu.Unlock()
				if err := w.Teardown(t.Context(), uid); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		eventually(t, w.leftovers)
	}
	if len(seen) != 2*pods {
		t.Errorf("%d addresses were used, want %d", len(seen), 2*pods)
	}
}

// After another program has flushed the rules or deleted the bridge, the next Setup or Reconcile restores them for all
// pods.
func TestRestoreAfterExternalDeletion(t *testing.T) {
	w := newWorld(t)
	web := w.pod("web", tcp(8080, 80))
	serve(t, web.NetnsPath, "web", "tcp", ":80")
	flush := func() {
		c, err := w.namespace.Nftables()
		check(t, err)
		defer func() { check(t, c.CloseLasting()) }()
		c.FlushRuleset()
		check(t, c.Flush())
	}
	flush()
	wantSilence(t, "without a ruleset", w.outside, "tcp", host4+":8080")
	w.pod("next")
	wantAnswer(t, "after the next pod", w.outside, "tcp", host4+":8080", "web", "")
	flush()
	check(t, w.Teardown(t.Context(), "next"))
	bridge, err := w.links.LinkByName(DefaultBridge)
	check(t, err)
	check(t, w.links.LinkDel(bridge))
	check(t, w.Reconcile(t.Context(), []string{"web"}))
	_, err = w.try(web.Request)
	check(t, err)
	wantAnswer(t, "after Reconcile and Setup", w.outside, "tcp", host4+":8080", "web", "")
}
