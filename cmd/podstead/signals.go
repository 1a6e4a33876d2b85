package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends at the first SIGINT or SIGTERM, so that the command can remove an incomplete file. The next one
// has its default action: it ends a command that does not react to the first.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		defer cancel()
		defer signal.Stop(signals)
		select {
		case <-signals:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
