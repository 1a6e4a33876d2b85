//go:build e2e

package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// deadline is for what takes seconds on an idle machine.
const deadline = 2 * time.Minute

// stage is a private Podstead.
type stage struct{ *rig.Rig }

// ownStage is a Podstead for one test, which may kill it.
func ownStage(t *testing.T) *stage {
	t.Helper()
	f := rig.NewFixture(t, deadline)
	f.CheckLeftovers(deadline, stopAll...)
	return &stage{f.Rig}
}

// stopAll is the command that ends the pods and the daemon.
var stopAll = []string{"daemon", "stop", "--pods"}

// create has the daemon, which is started if there is none, run a pod. It is safe for concurrent use.
func (g *stage) create(ctx context.Context, name, text string) (api.Pod, error) {
	if _, err := g.Podstead(ctx, "get", "-o", "name"); err != nil {
		return api.Pod{}, err
	}
	return g.Create(ctx, name, text)
}

// remove ends a pod by force and returns when it is gone.
func (g *stage) remove(ctx context.Context, name, uid string) error {
	var none time.Duration
	err := g.Client().Stop(ctx, name, api.StopOptions{UID: uid, Grace: &none, Delete: true})
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return rig.Await(ctx, func() error {
		p, err := g.Client().Pod(ctx, name)
		if isGone(err) || err == nil && p.Metadata.UID != uid {
			return nil
		}
		return errors.Join(err, fmt.Errorf("pod %s is not gone yet", name))
	})
}
