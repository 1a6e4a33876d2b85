package container

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
)

// counter counts collections.
type counter struct{ collections atomic.Int32 }

func (c *counter) collect(context.Context) error {
	c.collections.Add(1)
	return nil
}

func TestRequestsAreGrouped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		engine := &counter{}
		c := NewLayerCollector(engine.collect, Layers{Snapshots: &layers{}, Dir: t.TempDir()}, slog.Default())
		go c.Run(ctx)
		for range 10 {
			c.Request()
		}
		synctest.Wait()
		if engine.collections.Load() != 0 {
			t.Errorf("%d collections before the delay", engine.collections.Load())
		}
		c.Request() // during the delay: needs another collection
		time.Sleep(3 * delay)
		synctest.Wait()
		if engine.collections.Load() != 2 {
			t.Errorf("%d collections, want one for each group of requests", engine.collections.Load())
		}
		cancel()
		synctest.Wait()
	})
}

// layers is a snapshotter on a disk that may refuse.
type layers struct {
	snapshots.Snapshotter
	dir     string
	refuses atomic.Bool
	touched atomic.Int32
}

func (*layers) Walk(context.Context, snapshots.WalkFunc, ...string) error { return nil }

func (l *layers) Prepare(context.Context, string, string, ...snapshots.Opt) ([]mount.Mount, error) {
	l.touched.Add(1)
	if l.refuses.Load() {
		return nil, errors.New("no space left on device")
	}
	return nil, os.Remove(l.dir)
}

func (*layers) Remove(context.Context, string) error { return errdefs.ErrNotFound }

// TestLeftLayerIsRemoved: a layer that could not be removed from a full disk is removed when there is space again, without another request.
func TestLeftLayerIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		dir := t.TempDir()
		l := &layers{dir: filepath.Join(dir, "1")}
		if err := os.Mkdir(l.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		l.refuses.Store(true)
		engine := &counter{}
		c := NewLayerCollector(engine.collect, Layers{Snapshots: l, Dir: dir}, slog.New(slog.DiscardHandler))
		go c.Run(ctx)
		c.Request()
		time.Sleep(time.Hour)
		if n := l.touched.Load(); n < 3 || n > 20 {
			t.Errorf("%d tries in an hour", n)
		}
		l.refuses.Store(false)
		time.Sleep(2 * maxRetry)
		if _, err := os.Stat(l.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the layer is left: %v", err)
		}
		collections := engine.collections.Load()
		time.Sleep(time.Hour)
		if n := engine.collections.Load(); n != collections {
			t.Errorf("%d collections although nothing is left", n-collections)
		}
		cancel()
		synctest.Wait()
	})
}
