//go:build e2e

package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/test/internal/rig"
)

// deadline is for operations that take seconds on an idle host.
const deadline = 2 * time.Minute

// testDaemon is a private Podstead.
type testDaemon struct{ *rig.Rig }

// newDaemon returns a daemon for one test, which may kill it.
func newDaemon(t *testing.T) *testDaemon {
	t.Helper()
	f := rig.NewFixture(t, deadline)
	f.CheckLeftovers(deadline, stopAll...)
	return &testDaemon{f.Rig}
}

// stopAll are the arguments that stop the pods and the daemon.
var stopAll = []string{"daemon", "stop", "--pods"}

// create runs a pod, and starts the daemon if there is none. It is safe for concurrent use.
func (g *testDaemon) create(ctx context.Context, name, text string) (api.Pod, error) {
	if _, err := g.Podstead(ctx, "get", "-o", "name"); err != nil {
		return api.Pod{}, err
	}
	return g.Create(ctx, name, text)
}

// remove deletes a pod without a grace period and waits until it is removed.
func (g *testDaemon) remove(ctx context.Context, name, uid string) error {
	var none time.Duration
	err := g.Client().Stop(ctx, name, client.StopOptions{UID: uid, Grace: &none, Delete: true})
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return rig.Await(ctx, func() error {
		p, err := g.Client().Pod(ctx, name)
		if isNotFound(err) || err == nil && p.Metadata.UID != uid {
			return nil
		}
		return errors.Join(err, fmt.Errorf("pod %s is not removed yet", name))
	})
}
