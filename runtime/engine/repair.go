package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/containerd/containerd/v2/core/mount"
	digest "github.com/opencontainers/go-digest"
	bolt "go.etcd.io/bbolt"
)

// contentDir contains the content of images.
const contentDir = "io.containerd.content.v1.content"

const (
	// maxAlwaysChecked is the size of a database up to which it is always checked completely. Checking 4 MiB takes some milliseconds.
	maxAlwaysChecked = 4 << 20
	// openTimeout bounds the wait for the lock of a database, which no other process uses.
	openTimeout = 10 * time.Second
)

// DamageJournal is the journal of damaged files of the engine with this root directory.
func DamageJournal(root string) Journal {
	return Journal{Dir: filepath.Join(root, "damaged")}
}

// Damaged returns what was damaged when the engine started. The files were set aside.
func (e *Engine) Damaged() []DamageReport { return e.damaged }

// repairer checks the files of an engine that does not run, and sets damaged ones aside.
//
// What follows depends on the file. Lost records of containers are rebuilt, and the containers keep running. If that fails, or without the
// records of snapshots, the engine cannot manage running containers: their processes are ended, and the caller starts the containers again.
// Layers without records are deleted, and images unpacked again. A container without the state of the OCI runtime, which can neither signal
// nor delete it, is ended alone.
type repairer struct {
	e       *Engine
	unclean bool
	ended   bool // all containers were ended
	reports []DamageReport
}

// Repair checks all files of an engine completely, including the content of images, while no engine runs. Damaged content is deleted, so
// that it is pulled or imported again. If another process uses the root, the error is an [ErrInUse].
func Repair(ctx context.Context, o Options) (reports []DamageReport, err error) {
	if err := o.check(); err != nil { // programs are not needed
		return nil, err
	}
	if !exists(o.Root) {
		return nil, nil
	}
	l, err := takeLock(filepath.Join(o.Root, "lock"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	e := &Engine{opt: o, lock: l}
	if err := e.repair(ctx); err != nil {
		return nil, err
	}
	content, err := e.verifyContent(ctx)
	return append(e.damaged, content...), err
}

// repair must run before containerd opens its files.
func (e *Engine) repair(ctx context.Context) error {
	r := &repairer{e: e, unclean: !exists(e.cleanMarker())}
	if err := os.Remove(e.cleanMarker()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := r.metadata(ctx)
	for _, step := range []func(context.Context) error{r.snapshots, r.states} {
		if err == nil {
			err = step(ctx)
		}
	}
	e.damaged = r.reports
	if e := DamageJournal(e.opt.Root).Add(r.reports); e != nil { // the disk may be full
		r.e.opt.Log.WarnContext(ctx, "cannot record damaged files", slog.Any("error", e))
	}
	return err
}

// verifyContent reads the content of all images and deletes what does not match its digest.
func (e *Engine) verifyContent(ctx context.Context) ([]DamageReport, error) {
	files, err := filepath.Glob(filepath.Join(e.opt.Root, contentDir, "blobs", "*", "*"))
	var reports []DamageReport
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return reports, err
		}
		want := digest.NewDigestFromEncoded(digest.Algorithm(filepath.Base(filepath.Dir(file))), filepath.Base(file))
		if want.Validate() != nil {
			continue
		}
		e := verifyFile(file, want)
		if isDamage(e) {
			reports = append(reports, DamageReport{Time: time.Now().UTC(), File: file, Reason: "content does not match its digest"})
			e = nil
		}
		err = errors.Join(err, e)
	}
	return reports, errors.Join(err, DamageJournal(e.opt.Root).Add(reports))
}

// cleanMarker is a file that exists while the engine is stopped, if it was not killed.
func (e *Engine) cleanMarker() string { return filepath.Join(e.opt.Root, "clean") }

// markClean creates the marker. Without it, for example on a full disk, the next start checks all files completely.
func (e *Engine) markClean() { _ = os.WriteFile(e.cleanMarker(), nil, 0o600) }

// noPanic returns a panic of start as an error. The next start finds no clean marker and checks all files completely.
func noPanic(start func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a damaged database makes bbolt read outside of its file
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a file of the container engine may be damaged, the next start checks all of them: %v", p)
		}
	}()
	return start()
}

func (e *Engine) metadataFile() string {
	return filepath.Join(e.opt.Root, "io.containerd.metadata.v1.bolt", "meta.db")
}

// database checks a database.
func (r *repairer) database(path string, visit visitRecord) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if r.unclean || st.Size() <= maxAlwaysChecked {
		return checkDatabase(path, visit)
	}
	return checkHeader(path)
}

// metadata checks the records of containers, images and content.
func (r *repairer) metadata(ctx context.Context) error {
	path := r.e.metadataFile()
	err := r.database(path, checkRecord)
	if errors.Is(err, fs.ErrNotExist) {
		if err = nil; r.used() {
			err = &damageError{File: path, Reason: reasonMissing, Detail: "file is missing"}
		}
	}
	if err == nil || !isDamage(err) {
		return err
	}
	rebuilt, rebuildErr := r.e.rebuildMetadata(ctx)
	if rebuildErr != nil {
		r.e.opt.Log.WarnContext(ctx, "containers cannot be adopted", slog.Any("error", rebuildErr))
	}
	if err := r.setAside(ctx, err, rebuildErr != nil); err != nil {
		return err
	}
	if err := os.Rename(r.e.imageList(), r.e.lostImageList()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if rebuildErr == nil {
		return os.Rename(rebuilt, path)
	}
	// The snapshots have no owners any more.
	files, err := filepath.Glob(filepath.Join(r.e.opt.Root, "io.containerd.snapshotter.v1.*", "metadata.db"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file), removeLayers(filepath.Dir(file)))
	}
	return err
}

// used reports whether an engine has used the directories before.
func (r *repairer) used() bool {
	for _, pattern := range []string{
		filepath.Join(r.e.opt.Root, "io.containerd.snapshotter.v1.*", "snapshots", "*"),
		filepath.Join(r.e.opt.Root, contentDir, "blobs", "*", "*"),
		filepath.Join(r.e.opt.State, taskPlugin, Namespace, "*"),
		filepath.Join(r.e.opt.State, sandboxPlugin, Namespace, "*"),
		filepath.Join(r.e.opt.State, monitoredBundles, "*"),
	} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// snapshots checks the records of the snapshotters.
func (r *repairer) snapshots(ctx context.Context) error {
	dirs, err := filepath.Glob(filepath.Join(r.e.opt.Root, "io.containerd.snapshotter.v1.*"))
	for _, dir := range dirs {
		err = errors.Join(err, r.snapshotter(ctx, dir))
	}
	return err
}

func (r *repairer) snapshotter(ctx context.Context, dir string) error {
	path := filepath.Join(dir, "metadata.db")
	err := r.database(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		layers, _ := filepath.Glob(filepath.Join(dir, "snapshots", "*"))
		if err = nil; len(layers) > 0 {
			err = &damageError{File: path, Reason: reasonMissing, Detail: "file is missing"}
		}
	}
	if err == nil || !isDamage(err) {
		return err
	}
	if err := r.setAside(ctx, err, true); err != nil {
		return err
	}
	if err := removeLayers(dir); err != nil {
		return err
	}
	return forgetSnapshots(r.e.metadataFile(), filepath.Ext(dir)[1:])
}

// removeLayers deletes the layers of a snapshotter. No container may be running.
func removeLayers(dir string) error {
	return os.RemoveAll(filepath.Join(dir, "snapshots"))
}

// forgetSnapshots deletes the records of snapshots that no longer exist. containerd would take the layers of images for unpacked.
func forgetSnapshots(path, snapshotter string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: openTimeout})
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		version := tx.Bucket([]byte("v1"))
		if version == nil {
			return nil
		}
		return version.ForEachBucket(func(namespace []byte) error {
			all := version.Bucket(namespace).Bucket([]byte("snapshots"))
			if all == nil || all.Bucket([]byte(snapshotter)) == nil {
				return nil
			}
			return all.DeleteBucket([]byte(snapshotter))
		})
	})
	return errors.Join(err, db.Close())
}

// states checks the files of the OCI runtime. A container with processes may have none.
func (r *repairer) states(ctx context.Context) error {
	root := filepath.Join(r.e.opt.State, "runc", Namespace)
	dirs, err := filepath.Glob(filepath.Join(root, "*"))
	for _, id := range r.e.bundles() {
		if dir := filepath.Join(root, id); !exists(dir) && r.e.hasInit(id) && r.e.hasProcesses(id) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		err = errors.Join(err, r.state(ctx, dir))
	}
	return err
}

func (r *repairer) state(ctx context.Context, dir string) error {
	path, id := filepath.Join(dir, "state.json"), filepath.Base(dir)
	if status := filepath.Join(dir, "status"); exists(status) { // of crun
		path = status
	}
	err := checkState(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = nil; r.e.hasInit(id) {
			err = &damageError{File: path, Reason: reasonMissing, Detail: "file is missing"}
		}
	}
	if err == nil || !isDamage(err) {
		return err
	}
	if !r.ended {
		if endErr := r.e.endContainer(ctx, id); endErr != nil { // it must not keep the others from being supervised
			r.e.opt.Log.ErrorContext(ctx, "cannot end a container whose state is damaged", slog.String("container", id),
				slog.String("file", path), slog.Any("error", endErr))
			return nil
		}
	}
	if err := r.setAside(ctx, err, false); err != nil {
		return err
	}
	last := &r.reports[len(r.reports)-1]
	last.Container, last.Ended = id, true
	return os.RemoveAll(dir)
}

// setAside sets a file aside, after killing all containers if that is necessary.
func (r *repairer) setAside(ctx context.Context, found error, endAll bool) error {
	bad, _ := errors.AsType[*damageError](found)
	r.e.opt.Log.ErrorContext(ctx, "file of the container engine is damaged, setting it aside",
		slog.String("file", bad.File), slog.String("reason", bad.Detail), slog.Bool("ends_containers", endAll))
	if endAll && !r.ended {
		if err := r.e.endAll(ctx); err != nil {
			return err
		}
		r.ended = true
	}
	report, err := DamageJournal(r.e.opt.Root).SetAside(bad.File, bad.Reason, bad.Detail, time.Now())
	if err != nil {
		return err
	}
	report.Ended = endAll
	r.reports = append(r.reports, report)
	return nil
}

func isDamage(err error) bool {
	_, is := errors.AsType[*damageError](err)
	return is
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// unmountRoots unmounts the root file systems of containers that were ended.
func (e *Engine) unmountRoots() error {
	var errs []error
	for _, dir := range []string{filepath.Join(taskPlugin, Namespace), monitoredBundles} {
		roots, err := filepath.Glob(filepath.Join(e.opt.State, dir, "*", "rootfs"))
		errs = append(errs, err)
		for _, root := range roots {
			errs = append(errs, mount.UnmountRecursive(root, 0))
		}
	}
	return errors.Join(errs...)
}

// LayerDir is the directory that has a directory for each layer of a snapshotter.
func (e *Engine) LayerDir(snapshotter string) string {
	return filepath.Join(e.opt.Root, "io.containerd.snapshotter.v1."+snapshotter, "snapshots")
}
