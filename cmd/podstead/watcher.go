package main

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
)

// watcher is a connection to the daemon for commands that wait for pods. It implements [settle.Daemon].
type watcher struct {
	*ondemand.Starter
	waiting sync.Once
}

// watcher connects to the daemon, and starts it if it is not running.
func (a *app) watcher(cmd *cobra.Command) (*watcher, error) {
	s, err := a.connect(cmd)
	if err != nil {
		return nil, err
	}
	return &watcher{Starter: s}, a.reach(cmd.Context(), s)
}

// Watch is the method of [api.Client].
func (w *watcher) Watch(ctx context.Context) iter.Seq2[api.PodChange, error] {
	return w.Client.Watch(ctx)
}

// Connect is the method of [ondemand.Starter]. It prints once that the daemon was stopped.
func (w *watcher) Connect(ctx context.Context) error {
	err := w.Starter.Connect(ctx)
	if e, stopped := errors.AsType[*api.StoppedError](err); stopped && e.Pods > 0 {
		w.waiting.Do(func() {
			w.Notify("the daemon was stopped, its containers keep running; waiting until another command starts the daemon")
		})
	}
	return err
}
