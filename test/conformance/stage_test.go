//go:build e2e

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// deadline is for what takes seconds on an idle machine.
const deadline = 2 * time.Minute

// stage is a private Podstead.
type stage struct {
	*rig.Rig
	images string // the folder of their archives
}

func newStage() (*stage, error) {
	repository, err := rig.Repository()
	if err != nil {
		return nil, err
	}
	r, err := rig.New(repository)
	if err != nil {
		return nil, err
	}
	return &stage{r, filepath.Join(repository, "examples", "images")}, nil
}

// ownStage is a Podstead for one test, which may kill it.
func ownStage(t *testing.T) *stage {
	t.Helper()
	g, err := newStage()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), deadline, errors.New("it does not go"))
		defer cancel()
		if !t.Failed() {
			err = g.leavesNothing(ctx)
		}
		if err := errors.Join(err, g.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return g
}

// leavesNothing ends the pods and the daemon, and fails where anything of them is left.
func (g *stage) leavesNothing(ctx context.Context) error {
	if _, err := g.Podstead(ctx, "daemon", "stop", "--pods"); err != nil {
		return err
	}
	return rig.Await(ctx, func() error {
		left, err := g.Leftovers(ctx)
		if len(left) > 0 {
			err = errors.Join(err, fmt.Errorf("left behind:\n%s", strings.Join(left, "\n")))
		}
		return err
	})
}

// create asks the daemon, which is started if there is none, for the pod of a file. It is safe for concurrent use.
func (g *stage) create(ctx context.Context, name, text string) (api.Pod, error) {
	path, err := g.WritePod(name, text)
	if err != nil {
		return api.Pod{}, err
	}
	if _, err := g.Podstead(ctx, "get", "-o", "name"); err != nil {
		return api.Pod{}, err
	}
	made, err := g.Client().Create(ctx, api.CreateRequest{File: path, Text: text})
	if answer, is := errors.AsType[*api.Error](err); is {
		err = fmt.Errorf("%w: %v", err, answer.Problems)
	}
	if err != nil {
		return api.Pod{}, fmt.Errorf("create %s: %w", name, err)
	}
	g.Saw(made.Pod.Metadata.UID)
	return made.Pod, nil
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

// daemonLog is the end of what the daemon has said.
func (g *stage) daemonLog() string {
	text, err := os.ReadFile(g.DaemonLog())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}
