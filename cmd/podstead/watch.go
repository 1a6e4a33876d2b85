package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/filewatch"
	"github.com/podstead/podstead/cmd/podstead/internal/follow"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

// filesWatch is podstead up --watch: it applies files each time they change, and prints what their pods write.
type filesWatch struct {
	*app // its outputs are those of the printer

	cmd   *cobra.Command
	args  []string // empty: the Compose file of the current directory
	flags *runFlags

	files *filewatch.Watcher
	// watched is what files watches, and valid that of the last definitions that were valid.
	watched, valid filewatch.Set
	triggers       []compose.Trigger
	client         *client.Client
	options        follow.Options

	// waiting prints a notice once.
	waiting sync.Once
	// printed are the lines that reading the files has printed last, such as warnings.
	printed map[string]bool
	// pods are those that were applied; true: this command has created it.
	pods map[string]bool
	// removed are those of them that the files no longer define.
	removed map[string]bool

	mu sync.Mutex // guards defined
	// defined are the pods that the files define or have defined.
	defined map[string]bool
}

// watchFiles runs the pods of files until the user requests their stop, and follows changes of the files.
func (a *app) watchFiles(cmd *cobra.Command, args []string, f *runFlags) error {
	for _, name := range []string{"detach", "wait"} {
		if cmd.Flags().Changed(name) {
			return usage(cmd, "--%s and --watch cannot be combined", name)
		}
	}
	if slices.Contains(args, spec.Stdin) {
		return usage(cmd, "--watch requires files: standard input is read once")
	}
	files, err := filewatch.New()
	if err != nil {
		return err
	}
	defer files.Close()
	w := &filesWatch{app: a, cmd: cmd, args: args, flags: f, files: files}
	w.defined, w.pods, w.removed = map[string]bool{}, map[string]bool{}, map[string]bool{}
	list, err := w.read()
	if err != nil {
		return err
	}
	return a.inForeground(cmd, f, a.printer(f), func(ctx context.Context, s *ondemand.Starter, o follow.Options) error {
		w.client, w.options = s.Client, o
		own := *a
		own.err = a.err
		if t, ok := o.Printer.(*view.Text); ok {
			own.err = t.ErrWriter()
		}
		own.out = own.err // stdout is the output of containers
		w.app = &own
		return w.run(ctx, s, list)
	})
}

// read reads the files, and watches them. If a file is invalid, those that were read before are watched too.
func (w *filesWatch) read() ([]applied, error) {
	w.project.reads, w.project.triggers = nil, nil
	list, readErr := w.readQuietly()
	set, err := w.sources(list)
	if err != nil {
		return nil, err
	}
	if readErr != nil {
		set.Files, set.Trees = append(set.Files, w.valid.Files...), append(set.Trees, w.valid.Trees...)
	}
	if err := w.files.Watch(set); err != nil {
		return nil, errors.Join(readErr, notWatched(err))
	}
	if w.watched = set; readErr == nil {
		w.valid, w.triggers = set, w.project.triggers
	}
	return list, readErr
}

// notWatched is the error for files that cannot be watched.
func notWatched(err error) error {
	return &failure{status: statusFailed, err: err, hints: []string{"change path or ignore in the Compose file, to name fewer files"}}
}

// readQuietly reads the files. Of a valid file, it prints what it has not printed before.
func (w *filesWatch) readQuietly() ([]applied, error) {
	var b bytes.Buffer
	screen := w.err
	w.err = &b
	list, err := w.readDefinitions()
	w.err = screen
	printed := map[string]bool{}
	for line := range strings.Lines(b.String()) {
		if printed[line] = true; err != nil || !w.printed[line] {
			_, _ = io.WriteString(w.err, line)
		}
	}
	w.printed = printed
	return list, err
}

func (w *filesWatch) readDefinitions() ([]applied, error) {
	args := w.args
	if len(args) == 0 {
		var err error
		if args, err = defaultProject(w.cmd); err != nil {
			return nil, err
		}
	}
	return w.readApplied(w.cmd, args, w.flags.spec, w.flags.level)
}

// sources returns the files that definitions were read from, and those whose changes restart containers.
func (w *filesWatch) sources(list []applied) (s filewatch.Set, err error) {
	add := func(path string) {
		absolute, failed := filepath.Abs(path)
		if failed != nil {
			err = failed
			return
		}
		s.Files = append(s.Files, absolute)
	}
	args := w.args
	if len(args) == 0 {
		args = []string{"."} // which Compose files there are can change
	}
	for _, path := range args {
		if add(path); err == nil && isDirectory(path) {
			dir := s.Files[len(s.Files)-1]
			tree := filewatch.Tree{Path: dir, Flat: true}
			for _, extension := range podFileExtensions {
				tree.Include = append(tree.Include, "*"+extension)
			}
			s.Trees = append(s.Trees, tree)
		}
	}
	for _, path := range w.project.reads {
		add(path)
	}
	for i := range list {
		for _, path := range list[i].reads {
			add(path)
		}
	}
	for _, t := range w.project.triggers {
		s.Trees = append(s.Trees, filewatch.Tree{Path: t.Path, Include: t.Include, Ignore: t.Ignore})
	}
	slices.Sort(s.Files)
	s.Files = slices.Compact(s.Files)
	return s, err
}

// run applies definitions, and then those of changed files, until the stop is requested or the timeout has passed. Then it deletes the pods
// that it has created.
func (w *filesWatch) run(ctx context.Context, s *ondemand.Starter, list []applied) error {
	w.define(list) // before the attendance lists the pods: those that run and are unchanged are followed too
	attendance := follow.Attend(ctx, w.options, time.Now(), w.follows)
	defer attendance.Close()
	following, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var timeout <-chan time.Time
	if w.options.Timeout > 0 {
		t := time.NewTimer(w.options.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	result := make(chan error, 1)
	go func() {
		err := w.apply(following, list, true)
		if err == nil {
			err = w.follow(following)
		}
		result <- err
	}()
	var err error
	select {
	case <-w.options.Stops:
		stop(follow.ErrStopped)
		err = <-result
	case <-timeout:
		stop(fmt.Errorf("%w after %v", follow.ErrTimeout, w.options.Timeout))
		err = <-result
	case <-attendance.Ended():
		stop(noDaemon(attendance.Err()))
		err = <-result
	case err = <-result:
	}
	switch cause := context.Cause(following); {
	case errors.Is(cause, follow.ErrTimeout):
		w.options.Printer.Notice(cause.Error() + ", stopping the pods")
		err = cause
	case errors.Is(cause, follow.ErrStopped):
		err = nil
	}
	return errors.Join(err, w.end(ctx, s, attendance))
}

// noDaemon returns the error of a command without a daemon, from that of the connection.
func noDaemon(err error) error {
	if e, stopped := errors.AsType[*api.StoppedError](err); stopped && e.Pods == 0 {
		return errors.New("the daemon was stopped, and has deleted the pods")
	}
	return err
}

// follows reports whether a pod is one of the files.
func (w *filesWatch) follows(pod string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.defined[pod]
}

// define notes the pods of definitions.
func (w *filesWatch) define(list []applied) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range list {
		w.defined[list[i].pod] = true
	}
}

// follow applies the files each time they change, until the context ends. Its error is the cause of the end.
func (w *filesWatch) follow(ctx context.Context) error {
	w.options.Printer.Notice("watching files for changes, Ctrl-C stops the pods")
	for {
		changed, err := w.files.Next(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			w.report(notWatched(err))
			continue
		}
		definitions, restarts := w.divide(changed)
		if len(definitions) > 0 {
			w.options.Printer.Notice(w.names(definitions) + " changed")
			w.applyChanged(ctx)
		}
		w.restart(ctx, restarts)
	}
}

// applyChanged reads the files again, and applies them. If the daemon is unavailable, it waits for it.
func (w *filesWatch) applyChanged(ctx context.Context) {
	list, err := w.read() //nolint:contextcheck // it uses that of the command
	if err != nil {
		w.report(err)
		w.options.Printer.Notice("the pods keep running as they are")
		return
	}
	err = wait.Retry(ctx, w.options.Connect, func() error { return w.apply(ctx, list, false) })
	if ctx.Err() == nil {
		w.report(err)
	}
}

// triggered is a trigger with the files that have changed.
type triggered struct {
	compose.Trigger
	paths []string
}

// divide returns the changed files that definitions are read from, and those that restart containers. A file can be both.
func (w *filesWatch) divide(changed []string) (definitions []string, restarts []triggered) {
	restarting := map[string]bool{}
	for _, t := range w.triggers {
		tree := filewatch.Tree{Path: t.Path, Include: t.Include, Ignore: t.Ignore}
		if paths := slices.DeleteFunc(slices.Clone(changed), func(path string) bool { return !tree.Has(path) }); len(paths) > 0 {
			restarts = append(restarts, triggered{t, paths})
			for _, path := range paths {
				restarting[path] = true
			}
		}
	}
	for _, path := range changed {
		if !restarting[path] || w.defines(path) {
			definitions = append(definitions, path)
		}
	}
	return definitions, restarts
}

// defines reports whether definitions are read from a file, or can be: it is in a directory of pod files.
func (w *filesWatch) defines(path string) bool {
	return slices.Contains(w.watched.Files, path) ||
		slices.ContainsFunc(w.watched.Trees, func(t filewatch.Tree) bool { return t.Flat && t.Has(path) })
}

// names returns paths for a message, relative to the current directory where they are below it.
func (w *filesWatch) names(paths []string) string {
	const most = 3
	dir, _ := os.Getwd()
	var list []string
	for _, path := range paths {
		if relative, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(relative) {
			path = relative
		}
		list = append(list, path)
	}
	if more := len(list) - most; more > 0 {
		list = append(list[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

// apply applies definitions. The first time, pods that were stopped are started, as by podstead up -d.
func (w *filesWatch) apply(ctx context.Context, list []applied, first bool) error {
	before, err := w.client.Pods(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		if err := otherProject(&list[i], before.Items); err != nil {
			return err
		}
	}
	if err := w.checkClaims(ctx, w.client); err != nil {
		return err
	}
	w.define(list)
	var errs []error
	unchanged := 0
	for i := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		outcome, err := w.applyOne(ctx, &list[i], before.Items, first)
		errs = append(errs, err)
		if outcome == api.PodUnchanged {
			unchanged++
		}
	}
	if !first && unchanged == len(list) {
		w.options.Printer.Notice("no pod changes")
	}
	if !first {
		w.noteRemoved(list)
	}
	return errors.Join(errs...)
}

// applyOne applies a definition. The request is not interrupted: a pod that it creates must be known, to delete it.
func (w *filesWatch) applyOne(ctx context.Context, file *applied, before []api.Pod, first bool) (api.Outcome, error) {
	if _, known := w.pods[file.pod]; !known {
		w.pods[file.pod] = !slices.ContainsFunc(before, func(p api.Pod) bool { return p.Metadata.Name == file.pod })
	}
	result, err := w.client.Apply(context.WithoutCancel(ctx), file.request)
	if err != nil {
		return "", notApplied("apply", file, err)
	}
	if first || result.Outcome != api.PodUnchanged {
		w.printApplied(&result)
	}
	w.noteRolledBack(ctx, w.client, &result)
	w.noteUnit(&result, hintUnit(&result, before))
	if first {
		_, err = w.startAtRest(ctx, w.client, file, &result, before)
	}
	return result.Outcome, err
}

// printApplied prints what was applied, with a line for each changed field and what it restarts.
func (w *filesWatch) printApplied(r *api.Applied) {
	if r.Outcome != api.PodConfigured || len(r.Changes) == 0 {
		w.options.Printer.Notice(view.Applied(r))
		return
	}
	for _, c := range r.Changes {
		text := c.String()
		if c.Diff != "" {
			text = c.Path + " (" + c.Consequence() + ")"
		}
		w.options.Printer.Notice(view.Applied(r) + ": " + text)
	}
}

// noteRemoved prints once which pods of this command the files no longer define.
func (w *filesWatch) noteRemoved(list []applied) {
	for _, pod := range slices.Sorted(maps.Keys(w.pods)) {
		if slices.ContainsFunc(list, func(file applied) bool { return file.pod == pod }) {
			delete(w.removed, pod)
		} else if w.pods[pod] && !w.removed[pod] {
			w.removed[pod] = true
			w.options.Printer.Notice(fmt.Sprintf("pod/%s is no longer defined by the files, and is deleted when this command ends", pod))
		}
	}
}

// restart restarts the containers of triggers, each once.
func (w *filesWatch) restart(ctx context.Context, restarts []triggered) {
	done := map[string]bool{}
	for _, t := range restarts {
		for _, pod := range t.Pods {
			if done[pod+"/"+t.Container] || ctx.Err() != nil {
				continue
			}
			done[pod+"/"+t.Container] = true
			w.options.Printer.Notice(fmt.Sprintf("%s changed: restarting container %s of pod/%s", w.names(t.paths), t.Container, pod))
			err := wait.Retry(ctx, w.options.Connect, func() error {
				_, err := w.client.Restart(ctx, pod, "", t.Container)
				return err
			})
			if err != nil && ctx.Err() == nil {
				w.report(failed("restart", pod, err))
			}
		}
	}
}

// errInterrupted reports that the command has not waited for the deletion of its pods.
var errInterrupted = errors.New("interrupted, some pods may keep running: delete them with podstead down")

// end deletes the pods that this command has created, each after those that wait for it. Another request to stop kills them, and the one
// after that returns immediately. If the daemon was stopped, end waits for the next one, and another request returns immediately.
func (w *filesWatch) end(ctx context.Context, s *ondemand.Starter, attendance *follow.Attendance) error {
	list, err := w.remaining(ctx)
	if stopped, is := errors.AsType[*api.StoppedError](err); is && stopped.Pods == 0 {
		return nil // the daemon has deleted them
	}
	if err != nil {
		return err
	}
	var uids []string
	pods := slices.DeleteFunc(list.Items, func(p api.Pod) bool {
		created, is := w.pods[p.Metadata.Name]
		if is && !created {
			w.options.Printer.Notice(fmt.Sprintf("pod/%s ran before this command, and keeps running", p.Metadata.Name))
		}
		return !created
	})
	for i := range pods {
		uids = append(uids, pods[i].Metadata.UID)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	result := make(chan error, 1)
	go func() {
		var errs []error
		for _, step := range lastFirst(pods) {
			errs = append(errs, w.remove(ctx, &watcher{Starter: s}, step, client.StopOptions{Grace: w.options.Grace}, true))
		}
		const limit = 10 * time.Second // the daemon has deleted the pods, and their logs
		finishing, done := context.WithTimeout(ctx, limit)
		defer done()
		attendance.Finish(finishing, uids)
		result <- errors.Join(errs...)
	}()
	for stops := 1; ; stops++ {
		select {
		case err := <-result:
			return err
		case <-w.options.Stops:
		}
		if stops > 1 {
			return errInterrupted
		}
		inParallel(pods, func(_ int, p *api.Pod) error {
			return w.client.Stop(ctx, p.Metadata.Name, client.StopOptions{UID: p.Metadata.UID, Grace: new(time.Duration), Delete: true})
		})
	}
}

// remaining returns the pods that exist. It waits for a daemon, until the next request to stop.
func (w *filesWatch) remaining(ctx context.Context) (list api.PodList, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		err = wait.Retry(ctx, w.connect, func() (err error) {
			list, err = w.client.Pods(ctx)
			return err
		})
	}()
	select {
	case <-listed:
		return list, err
	case <-w.options.Stops:
		cancel()
		<-listed
		return api.PodList{}, errInterrupted
	}
}

// connect connects to a daemon that deletes the pods. If it was stopped, it prints once how the command ends.
func (w *filesWatch) connect(ctx context.Context) error {
	err := w.options.Connect(ctx)
	if e, stopped := errors.AsType[*api.StoppedError](err); stopped && e.Pods > 0 {
		w.waiting.Do(func() {
			w.options.Printer.Notice("the pods are deleted when another command starts the daemon, Ctrl-C leaves them running")
		})
	}
	return err
}
