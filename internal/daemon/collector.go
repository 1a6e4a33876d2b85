package daemon

import (
	"context"
	"path/filepath"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon/diskusage"
	"github.com/podstead/podstead/internal/daemon/images"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// imageRuntime is a [Runtime] that manages images. The one in memory, for tests, does not.
type imageRuntime interface {
	Images() *runtime.Images
	diskusage.Disk
}

// storage is what the daemon does with images and the disk. The zero value does nothing.
type storage struct {
	images    *images.Images
	collector *images.Collector
	system    *diskusage.System
}

// newStorage returns the images of the host with their collector, if the runtime manages images.
func (o *Options) newStorage(rt Runtime, s *supervisor.Supervisor, files *podfiles.Set) storage {
	r, ok := rt.(imageRuntime)
	if !ok {
		return storage{}
	}
	list := images.New(r.Images(), s, files)
	collector := images.NewCollector(imageLimits(o.Config), images.CollectorOptions{
		Images: list, Pods: s, File: filepath.Join(o.Config.StateDir, imageUseFile), Log: o.Log,
		Disk: func() (images.Disk, error) { return images.StatDisk(o.Config.StateDir) },
		Emit: func(kind api.EventKind, f event.Fields) { s.Events().Add(event.New(kind, s.Now().Wall, "", f)) },
	})
	return storage{list, collector, &diskusage.System{
		Disk: r, Images: list, Pods: s, Files: files, Ages: collector, Dir: o.Config.StateDir,
	}}
}

// serve sets the images and the system of the API, if the runtime manages images.
func (s storage) serve(o *server.Options) {
	if s.images != nil {
		o.Images, o.System = s.images, s.system
	}
}

// run collects images until ctx ends.
func (s storage) run(ctx context.Context) {
	if s.collector != nil {
		s.collector.Run(ctx)
	}
}

// imageLimits returns the limits of images.
func imageLimits(c *config.Config) images.Limits {
	return images.Limits{
		High: int(c.Images.GCHighPercent), Low: int(c.Images.GCLowPercent),
		MaxAge: c.Images.MaxAge.Duration(), MinAge: c.Images.MinAge.Duration(),
	}
}
