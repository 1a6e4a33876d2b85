package daemon

import (
	"context"
	"sync"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/imagedirs"
	"github.com/podstead/podstead/cmd/podstead/internal/images"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// imageRuntime is a [Runtime] that manages images. The one in memory, for tests, does not.
type imageRuntime interface{ Images() *runtime.Images }

// imagesOf returns the images of the host; nil: the runtime does not manage them.
func imagesOf(rt Runtime, s *supervisor.Supervisor, files *podfiles.Set) api.Images {
	if r, ok := rt.(imageRuntime); ok {
		return images.New(r.Images(), s, files)
	}
	return nil
}

// imageDirs returns the image directories after a first look at them; nil: the runtime does not manage images.
func (o *Options) imageDirs(ctx context.Context, rt Runtime) *imagedirs.Dirs {
	r, ok := rt.(imageRuntime)
	if !ok {
		return nil
	}
	c := &o.Config.Images
	d := imagedirs.New(r.Images(), imagedirs.Options{Paths: []string{c.SystemDir, c.Dir}, Log: o.Log})
	d.Scan(ctx)
	return d
}

// importImages imports the archives in the image directories until the returned function is called.
func importImages(ctx context.Context, d *imagedirs.Dirs, s *supervisor.Supervisor) (stop func()) {
	if d == nil {
		return func() {}
	}
	d.SetEmit(func(kind event.Kind, f event.Fields) { s.Events().Add(event.New(kind, s.Now().Wall, "", f)) })
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}
