//go:build e2e

package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// connectAsDaemon connects to a monitor as the daemon does: it starts a keeper if there is no monitor.
func (w *world) connectAsDaemon() {
	w.Helper()
	if w.client != nil {
		_ = w.client.Close()
	}
	var begun time.Time
	w.eventually("a monitor answers", func() error {
		ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
		defer cancel()
		c, err := Dial(ctx, w.dir())
		if err != nil {
			if time.Since(begun) > 200*time.Millisecond {
				begun = time.Now()
				w.startKeeper()
			}
			return err
		}
		if _, err := c.Hello(ctx); err != nil {
			return errors.Join(err, c.Close())
		}
		w.client = c
		return nil
	})
}

// TestUnused has a monitor that stops when it has no client and no container: the daemon was killed. A daemon that connects meanwhile has a
// monitor.
func TestUnused(t *testing.T) {
	const unused = 200 * time.Millisecond
	w := newWorld(t)
	w.must(w.client.Shutdown(w.ctx))
	gone := func() error {
		if pids := w.roles(); len(pids) > 0 {
			return fmt.Errorf("processes %v", pids)
		}
		return nil
	}
	w.eventually("keeper and monitor exit", gone)
	w.args = []string{"-unused", unused.String()}
	w.connectAsDaemon()
	c := w.run(testContainer{}, "sleep 1000")
	_, monitor := w.pids()
	_ = w.client.Close()
	<-time.After(3 * unused)
	w.connect()
	if _, pid := w.pids(); pid != monitor {
		t.Error("a monitor with a container has stopped")
	}
	w.killAndDelete(c.ID)
	<-time.After(3 * unused)
	if _, err := w.client.Hello(w.ctx); err != nil {
		t.Errorf("a monitor with a client has stopped: %v", err)
	}
	_ = w.client.Close()
	w.eventually("keeper and monitor exit", gone)
	if _, err := os.Stat(filepath.Join(w.dir(), Socket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}

	for range 30 * storm(t) {
		w.connectAsDaemon()
		if _, _, err := w.client.List(w.ctx); err != nil { // what it has connected to runs on
			t.Errorf("list: %v", err)
		}
		_ = w.client.Close()
		rest(2 * unused)
	}
	w.eventually("keeper and monitor exit", gone)
	w.connectAsDaemon()
	w.subscribe()
	_, _ = w.pids() // the answer follows the events
	select {
	case e := <-w.client.Events():
		t.Errorf("event of a monitor after one that has stopped: %+v", e)
	default:
	}
	w.wantNothing()
}
