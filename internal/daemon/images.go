package daemon

import (
	"context"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/daemon/imagefile"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
)

// imageDirs returns the image directories after a first look at them; nil: the runtime does not manage images.
func (o *Options) imageDirs(ctx context.Context, rt Runtime) *imagefile.Dirs {
	r, ok := rt.(imageRuntime)
	if !ok {
		return nil
	}
	c := &o.Config.Images
	d := imagefile.NewDirs(r.Images(), imagefile.DirsOptions{Paths: []string{c.SystemDir, c.Dir}, Log: o.Log})
	d.Scan(ctx)
	return d
}

// importImages imports the archives in the image directories until the returned function is called.
func importImages(ctx context.Context, d *imagefile.Dirs, s *supervisor.Supervisor) (stop func()) {
	if d == nil {
		return func() {}
	}
	d.SetEmit(func(kind api.EventKind, f event.Fields) { s.Events().Add(event.New(kind, s.Now().Wall, "", f)) })
	return inBackground(ctx, d.Run)
}
