package monitor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/v2/core/mount"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/cgroup"
	"github.com/podstead/podstead/runtime/ocibundle"
	"github.com/podstead/podstead/runtime/proctree"
)

// check returns an error for a container that cannot be created.
func (r *Create) check() error {
	if err := checkName("container ID", r.ID); err != nil {
		return err
	}
	if r.Sandbox != "" {
		if err := checkName("sandbox", r.Sandbox); err != nil {
			return err
		}
	}
	for what, path := range map[string]string{"bundle": r.Bundle, "runtime root": r.Runtime.Root} {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
			return errorf(ClassInvalid, "container %s: %s %q: must be a clean absolute path", r.ID, what, path)
		}
	}
	if r.Runtime.Binary == "" {
		return errorf(ClassInvalid, "container %s: runtime binary is missing", r.ID)
	}
	if r.Terminal && r.Output == "" {
		return errorf(ClassInvalid, "container %s: a terminal needs an output", r.ID)
	}
	if r.Output != "" {
		if _, ours, err := ocibundle.ParseOutput(r.Output); err != nil || !ours {
			return errorf(ClassInvalid, "container %s: output %.200q is not supported: %v", r.ID, r.Output, err)
		}
	}
	return nil
}

// create creates a container. On an error nothing of it is left.
func (m *Monitor) create(ctx context.Context, r Create) (*container, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	c := m.newContainer(record{Format: Format, Create: r, Phase: Creating})
	var err error
	if !m.loop.do(func() {
		switch other := m.containers[r.ID]; {
		case other != nil && !other.settled:
			err = errorf(ClassUnavailable, "an earlier container %s is being removed", r.ID)
		case other != nil:
			err = errorf(ClassExists, "container %s exists", r.ID)
		case m.replacing:
			err = errorf(ClassUnavailable, "the monitor is being replaced")
		default:
			m.containers[r.ID] = c
		}
	}) {
		err = errStopped
	}
	if err != nil {
		return nil, err
	}
	defer m.flights.begin()()
	if err = c.build(ctx); err == nil {
		return c, nil
	}
	if undone := c.remove(context.WithoutCancel(ctx)); undone != nil {
		logf("container %s: remove what was created: %v", c.id, undone)
		c.later(ctx, func() {})
	}
	return nil, err
}

// build creates the container and registers its process.
func (c *container) build(ctx context.Context) error {
	if err := os.RemoveAll(c.dir); err != nil { // left by an error
		return err
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return err
	}
	r := &c.rec.Create
	c.rec.Orphans = !ocibundle.OwnPIDs(r.Bundle)
	if err := c.save(); err != nil {
		return err
	}
	if err := ocibundle.Prepare(r.Bundle); err != nil {
		return err
	}
	if err := c.mountRoot(); err != nil {
		return err
	}
	keep := c.useFilter()
	console, streams, err := c.open()
	defer console.close()
	defer closeFiles(streams)
	if err != nil {
		return err
	}
	args := []string{"--bundle", r.Bundle, "--pid-file", filepath.Join(c.dir, pidFile)}
	if console != nil {
		args = append(args, "--console-socket", console.path)
	}
	run := invocation{runtime: r.Runtime, dir: c.dir, action: "create", args: append(args, c.id), streams: streams, score: *c.m.o.score}
	run.output = c.runtimeOutput
	if _, err := c.m.run(ctx, run); err != nil {
		return err
	}
	c.stdin.Created()
	if keep != nil {
		if err := keep(filepath.Join(r.Runtime.Root, c.id, "seccomp.bpf")); err != nil {
			logf("seccomp filters cannot be kept: they are compiled for each container: %v", err)
		}
	}
	if err := c.receiveTerminal(console); err != nil {
		return err
	}
	return c.adopt(Created)
}

// runtimeOutput returns the start of what the OCI runtime has written to standard error, if it could not create the container.
func (c *container) runtimeOutput() (text []byte) {
	err := c.inLoop(func() (err error) {
		if c.feed == nil || c.rec.Create.Terminal {
			return nil
		}
		c.read(1) // the loop may not have been here since
		text, err = c.feed.Head(crilog.Stderr, maxRuntimeOutput)
		return err
	})
	if err != nil {
		logf("container %s: read errors of the OCI runtime: %v", c.id, err)
	}
	return text
}

// adopt registers the first process, whose PID the OCI runtime has written.
func (c *container) adopt(phase Phase) error {
	pid, err := readPIDFile(filepath.Join(c.dir, pidFile))
	if err != nil {
		return err
	}
	s, err := proc.StatOf(pid)
	if err != nil {
		return err
	}
	pidfd, err := openProcess(pid, s.Start)
	if err != nil {
		return fmt.Errorf("open process %d of container %s: %w", pid, c.id, err)
	}
	if err := ocibundle.PinPID(pid, c.rec.Create.PinPID); err != nil {
		return errors.Join(err, unix.Close(pidfd))
	}
	group, err := cgroup.MemoryGroupOf(pid)
	hasMemory := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		logf("container %s: OOM kills will not be detected: %v", c.id, err)
	}
	dir, err := cgroup.ProcessDirOf(pid)
	if err != nil {
		return errors.Join(err, unix.Close(pidfd))
	}
	if own, err := cgroup.ProcessDirOf(os.Getpid()); err != nil || own == dir { // without root it has none
		dir, hasMemory = proctree.NamespaceOf(pid), false
	}
	if !c.m.loop.do(func() {
		c.rec.PID, c.rec.Start, c.rec.Phase, c.rec.Cgroup = pid, s.Start, phase, dir
		if hasMemory {
			c.rec.Memory, c.rec.Unified = group.Dir(), group.Unified()
		}
		if err = c.save(); err != nil {
			return
		}
		c.watchMemory()
		c.settled = true
		c.reportChange()
		c.flush()
		err = c.process.watch(c.m, pid, s.Start, pidfd, c.exited)
	}) {
		err = errStopped
	}
	return err
}

// mountRoot mounts the root file system on the bundle's directory.
func (c *container) mountRoot() error {
	r := &c.rec.Create
	if len(r.Rootfs) == 0 {
		return nil
	}
	root := filepath.Join(r.Bundle, "rootfs")
	if err := os.Mkdir(root, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var mounts []mount.Mount
	for _, m := range r.Rootfs {
		mounts = append(mounts, mount.Mount{Type: m.Type, Source: m.Source, Target: m.Target, Options: m.Options})
	}
	if err := mount.All(mounts, root); err != nil {
		return fmt.Errorf("mount root file system: %w", err)
	}
	return nil
}

// useFilter gives the container the seccomp filter that an earlier one was created with. If there is none, the result keeps that of this
// container.
func (c *container) useFilter() (keep func(compiled string) error) {
	r := &c.rec.Create
	if r.Runtime.Filters == "" || filepath.Base(r.Runtime.Binary) == "runc" { // runc leaves no filter
		return nil
	}
	keep, err := ocibundle.UseFilter(r.Runtime.Filters, r.Bundle, r.Runtime.Binary)
	if err != nil {
		logf("seccomp filters cannot be kept: they are compiled for each container: %v", err)
	}
	return keep
}

// open opens the log and the streams of a container that is about to be created. The files are the ends of the container. Without a log
// they are those of /dev/null; with a terminal there are none.
func (c *container) open() (_ *console, files *[3]*os.File, err error) {
	r := &c.rec.Create
	if err := c.inLoop(func() error { return errors.Join(c.openLog(), c.openStreams()) }); err != nil {
		return nil, nil, err
	}
	if r.Terminal {
		s, err := c.m.newConsole()
		return s, nil, err
	}
	opened := [3]bool{c.stdin != nil, c.feed != nil, c.feed != nil}
	files = &[3]*os.File{}
	for i, name := range []string{stdinName, stdoutName, stderrName} {
		path, flags := os.DevNull, unix.O_RDWR
		if opened[i] {
			path = filepath.Join(c.dir, name)
		}
		if i == 0 {
			flags = unix.O_RDONLY
		}
		var openErr error
		files[i], openErr = openForContainer(path, flags)
		err = errors.Join(err, openErr)
	}
	return nil, files, err
}

// openForContainer opens a FIFO as a standard stream of a container. Output is open for reading too, so that the container never gets
// EPIPE when no monitor runs. The descriptor is blocking, and shares no file status flags with that of the monitor.
func openForContainer(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0) // without O_NONBLOCK it would wait for a writer
	if err == nil {
		if err = unix.SetNonblock(fd, false); err != nil {
			closeAll(fd)
		}
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openStream creates the FIFO of a stream and opens the monitor's end, unless the keeper has kept it.
func (c *container) openStream(name string, flags int) (int, error) {
	full := c.id + "/" + name
	if fd, has := c.m.held[full]; has {
		return fd, nil
	}
	path := filepath.Join(c.dir, name)
	if err := unix.Mkfifo(path, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, &os.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	if err := os.Lchown(path, c.rec.Create.UID, c.rec.Create.GID); err != nil {
		return -1, err
	}
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	c.m.hold(full, fd)
	return fd, nil
}

// openLog opens the log, new or after the death of a monitor. It does nothing without one.
func (c *container) openLog() error {
	r := &c.rec.Create
	if r.Output == "" {
		return nil
	}
	o, _, err := ocibundle.ParseOutput(r.Output)
	if err != nil {
		return err
	}
	c.feed, err = crilog.OpenFeed(crilog.FeedOptions{
		Dir: filepath.Join(c.dir, logDir), Path: o.Log, Log: o.Options, Terminal: r.Terminal, Observe: c.observe,
	})
	if err != nil {
		return err
	}
	if o.Journal != nil {
		c.feed.CopyTo(crilog.NewJournal(*o.Journal, ""))
	}
	return nil
}

// openStreams opens the FIFOs, and registers the container for clients that attach. It is called in the loop.
func (c *container) openStreams() error {
	r := &c.rec.Create
	if c.feed == nil {
		return nil
	}
	o, _, err := ocibundle.ParseOutput(r.Output)
	if err != nil {
		return err
	}
	if o.Stdin != ocibundle.NoStdin && !c.rec.InputClosed {
		if err := c.openInput(o.Stdin); err != nil {
			return err
		}
	}
	c.attached = attach.NewContainer(attach.Options{Stdin: c.stdin, Terminal: r.Terminal, Resize: func(s attach.Size) error {
		return c.inLoop(func() error { return c.resizeTerminal(Size(s)) })
	}})
	names := []string{stdoutName, stderrName}
	if r.Terminal {
		names = names[:1]
	}
	for i, name := range names {
		fd, err := c.openStream(name, unix.O_RDWR) // also for reading: at the end of the container it has no EOF, which would wake the loop
		if err != nil {
			return err
		}
		c.streams[i].fd = fd
		c.outputs[i] = c.attached.Output(name)
	}
	c.m.attached.Add(c.id, c.attached)
	if r.Terminal && c.terminal.master == 0 {
		return nil // it is not created yet
	}
	return c.listen()
}

// openInput opens the standard input. One end for writing is kept by the keeper, so that the container gets no EOF when a monitor dies. It
// is called in the loop.
func (c *container) openInput(kind ocibundle.Stdin) (err error) {
	path := filepath.Join(c.dir, stdinName)
	once := kind == ocibundle.OnceStdin && !c.rec.Create.Terminal
	if c.stdin, err = attach.NewStdin(path, once, c.closeInput); err != nil {
		return err
	}
	// An end that is open for reading too would hide that the container has closed its own.
	flags := unix.O_WRONLY
	if c.rec.Create.Terminal {
		flags = unix.O_RDWR
	}
	fd, err := c.openStream(stdinName, flags)
	if err == nil && c.rec.Create.Terminal {
		c.terminal.input = fd
	}
	if c.rec.Phase != Creating {
		c.stdin.Created()
	}
	return err
}

// closeInput closes the standard input for good. It is called outside of the loop.
func (c *container) closeInput() error {
	return c.inLoop(func() error {
		c.rec.InputClosed = true
		c.m.release(c.id + "/" + stdinName)
		return c.save()
	})
}

// receiveTerminal receives the terminal that the OCI runtime has created, and begins to read it.
func (c *container) receiveTerminal(s *console) error {
	if s == nil {
		return nil
	}
	master, err := s.receive()
	if err != nil {
		return err
	}
	return c.inLoop(func() error {
		c.terminal.master = master
		c.m.hold(c.id+"/"+terminalName, master)
		return c.listen()
	})
}

func closeFiles(files *[3]*os.File) {
	if files == nil {
		return
	}
	for _, f := range files {
		_ = f.Close() // nothing was written to it; nil: it could not be opened
	}
}

// start starts a container that was created.
func (m *Monitor) start(ctx context.Context, id string) (*container, error) {
	var c *container
	var err error
	if !m.loop.do(func() {
		if c, err = m.find(id); err != nil {
			return
		}
		if c.rec.Phase != Created || c.deleting {
			err = errorf(ClassPrecondition, "container %s is %s", id, c.rec.Phase)
			return
		}
		c.rec.Starting = true
		err = c.save()
	}) {
		err = errStopped
	}
	if err != nil {
		return nil, err
	}
	defer m.flights.begin()()
	_, err = m.run(ctx, invocation{runtime: c.rec.Create.Runtime, dir: c.dir, action: "start", args: []string{id}, score: *m.o.score})
	if !m.loop.do(func() {
		if err == nil && c.rec.Phase == Created {
			c.rec.Phase = Running
			c.reportChange()
		}
		c.rec.Starting = err == nil
		err = errors.Join(err, c.save())
	}) {
		err = errStopped
	}
	return c, err
}

// later removes what could not be removed, until that succeeds. Then it calls removed in the loop.
func (c *container) later(ctx context.Context, removed func()) {
	c.m.loop.post(func() {
		c.m.loop.after(10*againTime, func() {
			go func() {
				if c.remove(context.WithoutCancel(ctx)) != nil {
					c.later(ctx, removed)
					return
				}
				c.m.loop.post(removed)
			}()
		})
	})
}

// remove kills and removes a container, in whatever state it is. It can be repeated. The bundle stays, because the client may try again.
func (c *container) remove(ctx context.Context) error {
	if err := c.kill(ctx); err != nil {
		return err
	}
	return c.clear()
}

// removeWithBundle is remove for a container that was created. The bundle is removed before the record: a client that finds no container
// cannot request that.
func (c *container) removeWithBundle(ctx context.Context) error {
	if err := c.kill(ctx); err != nil {
		return err
	}
	if err := removeBundle(c.rec.Create.Bundle); err != nil {
		return err
	}
	return c.clear()
}

// kill kills a container and removes its state in the OCI runtime.
func (c *container) kill(ctx context.Context) error {
	r := &c.rec.Create
	if !r.Runtime.isLost(c.id) {
		if _, err := os.Stat(c.dir); err != nil {
			return err
		}
		force := []string{"--force", c.id}
		_, err := c.m.run(ctx, invocation{runtime: r.Runtime, dir: c.dir, action: "delete", args: force, score: *c.m.o.score})
		if err != nil && !r.Runtime.isLost(c.id) {
			return err
		}
	}
	return c.killFirst()
}

// killFirst kills the first process and waits for its exit. The OCI runtime may have lost it.
func (c *container) killFirst() error {
	pid := c.rec.PID
	if pid == 0 {
		pid, _ = readPIDFile(filepath.Join(c.dir, pidFile)) // it may not exist
	}
	s, err := proc.StatOf(pid)
	known := c.rec.Start != 0 && s.Start == c.rec.Start
	ours := c.rec.Start == 0 && (s.Parent == os.Getpid() || s.Parent == keeperPID())
	if pid == 0 || err != nil || !known && !ours {
		return nil // it is gone, or another process has the ID
	}
	fd, err := openProcess(pid, s.Start)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeAll(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !isGone(err) {
		return err
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := retry(func() (int, error) { return unix.Poll(poll, int(killedTimeout/time.Millisecond)) })
	if err == nil && n == 0 {
		err = errorf(ClassDeadline, "process %d of container %s does not exit", pid, c.id)
	}
	return err
}

// clear removes all of a container that has no process, except the bundle. It can be repeated.
func (c *container) clear() error {
	r := &c.rec.Create
	if r.PinPID != "" {
		err := unix.Unmount(r.PinPID, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("unmount %s: %w", r.PinPID, err)
		}
	}
	if err := unmountRoot(r.Bundle); err != nil {
		return err
	}
	if !c.m.loop.do(c.forget) {
		return errStopped
	}
	// The record first: what is left of a directory without one is removed by the next monitor.
	if err := os.Remove(filepath.Join(c.dir, recordFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(c.dir)
}

// removeBundle removes a bundle and its mounts.
func removeBundle(bundle string) error {
	if err := unmountRoot(bundle); err != nil {
		return err
	}
	return os.RemoveAll(bundle)
}

// unmountRoot unmounts the root file system and removes its mount point. It deletes no file of a root file system.
func unmountRoot(bundle string) error {
	root := filepath.Join(bundle, "rootfs")
	info, err := os.Lstat(root)
	if err == nil && info.IsDir() {
		if err := mount.UnmountRecursive(root, 0); err != nil {
			return fmt.Errorf("unmount root file system: %w", err)
		}
		if err := os.Remove(root); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove mount point of root file system: %w", err)
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return ocibundle.RemoveRoot(bundle)
}
