package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/plain"
)

// watcher is a connection to the daemon for commands that wait for pods. It implements [wait.Daemon].
type watcher struct {
	*ondemand.Starter
	waiting sync.Once
	// awaited are the names of the pods that the command waits for; true: what keeps it from being removed was printed.
	awaited map[string]bool
}

// watcher connects to the daemon, and starts it if it is not running.
func (a *app) watcher(cmd *cobra.Command) (*watcher, error) {
	s, err := a.connect(cmd)
	if err != nil {
		return nil, err
	}
	return &watcher{Starter: s, awaited: map[string]bool{}}, a.reach(cmd.Context(), s)
}

// Watch is the method of [api.Client]. It prints once what keeps an awaited pod from being removed.
func (w *watcher) Watch(ctx context.Context) iter.Seq2[api.PodChange, error] {
	return func(yield func(api.PodChange, error) bool) {
		for change, err := range w.Client.Watch(ctx) {
			if err == nil {
				w.printObstacle(&change.Object)
			}
			if !yield(change, err) {
				return
			}
		}
	}
}

// await sets that the command waits for a pod.
func (w *watcher) await(name string) {
	if _, awaited := w.awaited[name]; !awaited {
		w.awaited[name] = false
	}
}

// printObstacle prints what keeps a pod, or its sandbox before a restart, from being removed.
func (w *watcher) printObstacle(p *api.Pod) {
	name := p.Metadata.Name
	printed, awaited := w.awaited[name]
	if !awaited || printed {
		return
	}
	for _, c := range p.Status.Conditions {
		if c.Type == api.RemovalFailed && c.Status == "True" {
			w.awaited[name] = true
			w.Notify(fmt.Sprintf("pod/%s is not removed yet, trying again: %s", name, plain.Text(c.Message)))
		}
	}
}

// Connect is the method of [ondemand.Starter]. It prints once that the daemon was stopped.
func (w *watcher) Connect(ctx context.Context) error {
	err := w.Starter.Connect(ctx)
	if e, stopped := errors.AsType[*api.StoppedError](err); stopped && e.Pods > 0 {
		w.waiting.Do(func() { w.Notify(wait.DaemonStopped) })
	}
	return err
}
