package metrics

import (
	"context"
	"errors"
	"log/slog"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/disk"
)

// checkTimeout bounds each check of the daemon and the host for one request.
const checkTimeout = time.Second

// directory is a directory of the daemon whose file system is measured.
type directory struct {
	name, path string
	disk       *disk.Caller // a file system that hangs blocks no other one
	statfs     func(string, *unix.Statfs_t) error
}

func newDirectory(name, path string, log *slog.Logger) *directory {
	return &directory{name, path, disk.NewCaller(log), unix.Statfs}
}

// fileSystem is the usage of a file system.
type fileSystem struct{ size, used, inodes, inodesUsed float64 }

// usage measures the file system; nil: it did not respond.
func (d *directory) usage(ctx context.Context) *fileSystem {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	f, err := disk.Call(ctx, d.disk, func() (fileSystem, error) {
		var fs unix.Statfs_t
		if err := d.statfs(d.path, &fs); err != nil {
			return fileSystem{}, err
		}
		block := float64(fs.Bsize)
		used := float64(fs.Blocks-fs.Bfree) * block
		return fileSystem{used + float64(fs.Bavail)*block, used, float64(fs.Files), float64(fs.Files - fs.Ffree)}, nil
	})
	if err != nil {
		return nil
	}
	return &f
}

func (s *sample) directory(d *directory, f *fileSystem) {
	s.flag(diskUp, f != nil, d.name)
	if f == nil {
		return
	}
	s.add(diskSize, f.size, d.name)
	s.add(diskUsed, f.used, d.name)
	s.add(diskInodes, f.inodes, d.name)
	s.add(diskInodesUsed, f.inodesUsed, d.name)
}

// machine adds the capacity of the host.
func (s *sample) machine() {
	s.add(machineCores, float64(goruntime.NumCPU()))
	var host unix.Sysinfo_t
	if unix.Sysinfo(&host) == nil {
		s.add(machineMemory, float64(host.Totalram)*float64(host.Unit))
	}
}

// errSlow is the cause of a check that takes too long.
var errSlow = errors.New("timed out")

// timed runs a check that is bounded by [checkTimeout], and returns how long it took.
func timed(ctx context.Context, check func(context.Context) error) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, errSlow)
	defer cancel()
	begun := time.Now()
	err = check(ctx)
	return time.Since(begun), err
}
