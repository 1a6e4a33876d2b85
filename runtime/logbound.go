package runtime

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/internal/disk"
	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/runtime/sandbox"
)

const (
	// defaultLogPart and defaultLogMax are the default limit: a tenth of the file system, at most 4 GiB.
	defaultLogPart = 10
	defaultLogMax  = 4 << 30

	// minLogPause is the shortest time between two checks, quietLogPause the longest while the limit is near, and maxLogPause the longest.
	// A check opens two directories for each container: with 200 pods, one every 10 s took most of the CPU time of an idle daemon.
	minLogPause, quietLogPause, maxLogPause = time.Second, 10 * time.Second, time.Minute

	// logBurst is how many bytes per second are expected of containers that wrote little before.
	logBurst = 100 << 20

	// logCleanup is the time after which a check is abandoned when the daemon stops.
	logCleanup = time.Second

	// logReportPause is the shortest time between two messages.
	logReportPause = time.Minute

	// maxNamedLogs bounds the containers in a message.
	maxNamedLogs = 20

	// abandonedLog is the age of a temporary file that its writer has left.
	abandonedLog = time.Hour
)

// logBoundOptions are the options of a [logBound]. All except Max, Memory and Report are required.
type logBoundOptions struct {
	// Dir contains the logs, see [crilog.DiskFiles].
	Dir string
	// Max is the limit in bytes. The default is a tenth of the file system, at most 4 GiB.
	Max int64
	// Memory is set for logs in memory. They use at most the default limit, also if Max is larger.
	Memory bool
	// Running returns the paths of the logs of all containers that may be running.
	Running func(context.Context) (map[string]bool, error)
	// Report receives what containers have lost, at most 20 of them every 10 minutes. It returns false if it must be called again later.
	Report func(LogLoss) bool
	Log    *slog.Logger
}

// logBound bounds the disk space of the logs of all containers in a directory. It removes files of logs, the oldest rotated files first,
// and never the file that a running container writes to. The limits of each container are those of package crilog, and are kept by the
// shims, also while the daemon is down. The methods must not be called at the same time.
type logBound struct {
	o        logBoundOptions
	reported time.Time
	failed   time.Time   // of the last message about an error
	removed  removedLogs // since the last message
	losses   logLosses   // since the last report
}

// removedLogs is what a check has removed.
type removedLogs struct {
	Files int
	Bytes int64
	// Containers are those whose files were removed, as <pod>_<UID>/<container>.
	Containers map[string]bool
}

// newLogBound returns a bound. Call [logBound.Run].
func newLogBound(o logBoundOptions) *logBound { return &logBound{o: o} }

// Run checks the logs until ctx ends, at once and then every 1 to 60 seconds: the more often, the sooner the limit can be reached.
func (b *logBound) Run(ctx context.Context) {
	var before int64 = -1
	for pause := minLogPause; ctx.Err() == nil; {
		var used, limit int64
		// The file system may not respond.
		_, err := guard.Call(ctx, logCleanup, b.o.Log, func(ctx context.Context) (_ struct{}, err error) {
			used, limit, err = b.Check(ctx)
			return struct{}{}, err
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil && time.Since(b.failed) >= logReportPause {
			b.failed = time.Now()
			b.o.Log.WarnContext(ctx, "cannot bound the logs of all containers", slog.Any("error", err))
		}
		pause = nextLogCheck(before, used, limit, pause)
		before = used
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// nextLogCheck returns the time until the next check: half of that in which the growth since the last one would reach the limit, and at
// most the time in which a burst would reach it, but not less than quietLogPause for that.
func nextLogCheck(before, used, limit int64, since time.Duration) time.Duration {
	if before < 0 || used >= limit {
		return minLogPause
	}
	seconds := min(max(float64(limit-used)/logBurst, quietLogPause.Seconds()), maxLogPause.Seconds())
	if growth := used - before; growth > 0 {
		seconds = min(seconds, max(float64(limit-used)/float64(growth)*since.Seconds()/2, minLogPause.Seconds()))
	}
	return time.Duration(seconds * float64(time.Second))
}

// Check measures the logs. If they exceed the limit, it removes files until they use at most nine tenths of it. It returns what they use
// then.
func (b *logBound) Check(ctx context.Context) (used, limit int64, err error) {
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
	used, e := b.remove(rotatedLogs(files), used, target)
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
func (b *logBound) Limit() (int64, error) {
	if b.o.Max > 0 && !b.o.Memory {
		return b.o.Max, nil
	}
	stat, err := sandbox.FileSystem(b.o.Dir) // created with the first log
	if err != nil {
		return 0, err
	}
	limit := min(disk.BlockBytes(&stat, stat.Blocks)/defaultLogPart, defaultLogMax)
	if b.o.Max > 0 {
		limit = min(limit, b.o.Max)
	}
	return limit, nil
}

// rotatedLogs returns the rotated files and abandoned temporary ones, the oldest first.
func rotatedLogs(files []crilog.DiskFile) []crilog.DiskFile {
	return oldestLogs(files, func(f *crilog.DiskFile) bool {
		return !f.Current() && (!f.Temporary() || time.Since(f.Modified) > abandonedLog)
	})
}

// finishedFiles returns the newest files of the logs of containers that do not run, the oldest first.
func (b *logBound) finishedFiles(files []crilog.DiskFile, running map[string]bool) []crilog.DiskFile {
	return oldestLogs(files, func(f *crilog.DiskFile) bool { return f.Current() && !running[filepath.Join(b.o.Dir, f.Log())] })
}

func oldestLogs(files []crilog.DiskFile, match func(*crilog.DiskFile) bool) (list []crilog.DiskFile) {
	for i := range files {
		if match(&files[i]) {
			list = append(list, files[i])
		}
	}
	order.Sort(list, func(a, b crilog.DiskFile) int { return a.Modified.Compare(b.Modified) })
	return list
}

// remove removes files until the rest uses at most target bytes. A file that cannot be removed is skipped.
func (b *logBound) remove(files []crilog.DiskFile, used, target int64) (int64, error) {
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
func (b *logBound) report(ctx context.Context, used, limit int64) {
	if time.Since(b.reported) < logReportPause {
		return
	}
	b.reported = time.Now()
	if b.removed.Files > 0 {
		names := slices.Sorted(maps.Keys(b.removed.Containers))
		b.o.Log.LogAttrs(ctx, slog.LevelWarn, "removed the oldest logs: the logs of all containers exceed containerLog.totalMaxSize",
			slog.Int("files", b.removed.Files), slog.Int64("bytes", b.removed.Bytes), slog.Int64("limit", limit), slog.Int64("used", used),
			slog.Any("containers", names[:min(len(names), maxNamedLogs)]))
		b.removed = removedLogs{}
	}
	if used > limit {
		b.o.Log.LogAttrs(ctx, slog.LevelWarn, "logs exceed containerLog.totalMaxSize: the rest is the current logs of running containers",
			slog.Int64("limit", limit), slog.Int64("used", used))
	}
}
