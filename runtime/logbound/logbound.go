// Package logbound bounds the disk space of the logs of all containers of the host. It removes files of logs, the oldest rotated files
// first, and never the file that a running container writes to. The limits of each container are those of package crilog, and are kept by
// the shims, also while the daemon is down.
package logbound

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/internal/guard"
)

const (
	// defaultPart and defaultMax are the default limit: a tenth of the file system, at most 4 GiB.
	defaultPart = 10
	defaultMax  = 4 << 30

	// minPause and maxPause are the shortest and the longest time between two checks.
	minPause, maxPause = time.Second, 10 * time.Second

	// cleanup is the time after which a check is abandoned when the daemon stops.
	cleanup = time.Second

	// reportPause is the shortest time between two messages.
	reportPause = time.Minute

	// abandoned is the age of a temporary file that its writer has left.
	abandoned = time.Hour
)

// Options are the options of a [Bound]. All except Max, Memory and Report are required.
type Options struct {
	// Dir contains the logs, see [crilog.DiskFiles].
	Dir string
	// Max is the limit in bytes. The default is a tenth of the file system, at most 4 GiB.
	Max int64
	// Memory is set for logs in memory. They use at most the default limit, also if Max is larger.
	Memory bool
	// Running returns the paths of the logs of all containers that may be running.
	Running func(context.Context) (map[string]bool, error)
	// Report receives what containers have lost, at most 20 of them every 10 minutes. It returns false if it must be called again later.
	Report func(Loss) bool
	Log    *slog.Logger
}

// Bound bounds the logs in a directory. Its methods must not be called at the same time.
type Bound struct {
	o        Options
	reported time.Time
	failed   time.Time // of the last message about an error
	removed  Removed   // since the last message
	losses   losses    // since the last report
}

// Removed is what a check has removed.
type Removed struct {
	Files int
	Bytes int64
	// Containers are those whose files were removed, as <pod>_<UID>/<container>.
	Containers map[string]bool
}

// New returns a bound. Call [Bound.Run].
func New(o Options) *Bound { return &Bound{o: o} }

// Run checks the logs until ctx ends, at once and then every 1 to 10 seconds: the more often, the sooner the limit can be reached.
func (b *Bound) Run(ctx context.Context) {
	var before int64 = -1
	for pause := minPause; ctx.Err() == nil; {
		var used, limit int64
		_, err := guard.Call(ctx, cleanup, b.o.Log, func(ctx context.Context) (_ struct{}, err error) { // the file system may not respond
			used, limit, err = b.Check(ctx)
			return struct{}{}, err
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil && time.Since(b.failed) >= reportPause {
			b.failed = time.Now()
			b.o.Log.WarnContext(ctx, "cannot bound the logs of all containers", slog.Any("error", err))
		}
		pause = next(before, used, limit, pause)
		before = used
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// next returns the time until the next check: half of that in which the growth since the last one would reach the limit.
func next(before, used, limit int64, since time.Duration) time.Duration {
	growth := used - before
	switch {
	case before < 0 || used >= limit:
		return minPause
	case growth <= 0:
		return maxPause
	}
	seconds := float64(limit-used) / float64(growth) * since.Seconds() / 2
	return time.Duration(min(max(seconds, minPause.Seconds()), maxPause.Seconds()) * float64(time.Second))
}

// Check measures the logs. If they exceed the limit, it removes files until they use at most nine tenths of it. It returns what they use
// then.
func (b *Bound) Check(ctx context.Context) (used, limit int64, err error) {
	limit, err = b.Limit()
	if err != nil {
		return 0, 0, err
	}
	files, err := crilog.DiskFiles(b.o.Dir)
	for i := range files {
		used += files[i].Size
	}
	defer func() { b.losses.report(limit, b.o.Report) }()
	if used <= limit {
		return used, limit, err
	}
	target := limit / 10 * 9
	used, e := b.remove(rotatedFiles(files), used, target)
	err = errors.Join(err, e)
	if used > limit {
		running, e := b.o.Running(ctx)
		if err = errors.Join(err, e); e != nil {
			return used, limit, err // without knowing which containers run, current files are kept
		}
		used, e = b.remove(b.finishedFiles(files, running), used, target)
		err = errors.Join(err, e)
	}
	b.report(ctx, used, limit)
	return used, limit, err
}

// Limit returns the limit in bytes.
func (b *Bound) Limit() (int64, error) {
	if b.o.Max > 0 && !b.o.Memory {
		return b.o.Max, nil
	}
	var stat unix.Statfs_t
	for dir := b.o.Dir; ; dir = filepath.Dir(dir) {
		err := unix.Statfs(dir, &stat)
		if errors.Is(err, fs.ErrNotExist) && dir != "/" {
			continue // created with the first log
		}
		if err != nil {
			return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
		}
		limit := min(disk.BlockBytes(&stat, stat.Blocks)/defaultPart, defaultMax)
		if b.o.Max > 0 {
			limit = min(limit, b.o.Max)
		}
		return limit, nil
	}
}

// rotatedFiles returns the rotated files and abandoned temporary ones, the oldest first.
func rotatedFiles(files []crilog.DiskFile) []crilog.DiskFile {
	return oldestFirst(files, func(f *crilog.DiskFile) bool {
		return !f.Current() && (!f.Temporary() || time.Since(f.Modified) > abandoned)
	})
}

// finishedFiles returns the newest files of the logs of containers that do not run, the oldest first.
func (b *Bound) finishedFiles(files []crilog.DiskFile, running map[string]bool) []crilog.DiskFile {
	return oldestFirst(files, func(f *crilog.DiskFile) bool { return f.Current() && !running[filepath.Join(b.o.Dir, f.Log())] })
}

func oldestFirst(files []crilog.DiskFile, match func(*crilog.DiskFile) bool) (list []crilog.DiskFile) {
	for i := range files {
		if match(&files[i]) {
			list = append(list, files[i])
		}
	}
	slices.SortStableFunc(list, func(a, b crilog.DiskFile) int { return a.Modified.Compare(b.Modified) })
	return list
}

// remove removes files until the rest uses at most target bytes. A file that cannot be removed is skipped.
func (b *Bound) remove(files []crilog.DiskFile, used, target int64) (int64, error) {
	var errs []error
	for i := range files {
		if used <= target {
			break
		}
		f := &files[i]
		removed, err := crilog.RemoveDiskFile(b.o.Dir, f)
		errs = append(errs, err)
		if !removed {
			continue
		}
		used -= f.Size
		b.losses.add(f.Pod, f.Container, f.Size)
		b.removed.Files++
		b.removed.Bytes += f.Size
		if b.removed.Containers == nil {
			b.removed.Containers = map[string]bool{}
		}
		b.removed.Containers[filepath.Join(f.Pod, f.Container)] = true
	}
	return used, errors.Join(errs...)
}

// report logs what was removed since the last message, at most once a minute.
func (b *Bound) report(ctx context.Context, used, limit int64) {
	if time.Since(b.reported) < reportPause {
		return
	}
	b.reported = time.Now()
	if b.removed.Files > 0 {
		b.o.Log.LogAttrs(ctx, slog.LevelWarn, "removed the oldest logs: the logs of all containers exceed containerLog.totalMaxSize",
			slog.Int("files", b.removed.Files), slog.Int64("bytes", b.removed.Bytes), slog.Int64("limit", limit), slog.Int64("used", used),
			slog.Any("containers", sortedKeys(b.removed.Containers)))
		b.removed = Removed{}
	}
	if used > limit {
		b.o.Log.LogAttrs(ctx, slog.LevelWarn, "logs exceed containerLog.totalMaxSize: the rest is the current logs of running containers",
			slog.Int64("limit", limit), slog.Int64("used", used))
	}
}

// maxNamed bounds the containers in a message.
const maxNamed = 20

func sortedKeys(set map[string]bool) []string {
	var list []string
	for key := range set {
		list = append(list, key)
	}
	slices.Sort(list)
	return list[:min(len(list), maxNamed)]
}
