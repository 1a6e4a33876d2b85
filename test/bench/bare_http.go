package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// bareRequest is the request of an HTTP probe without optional headers.
const bareRequest = "GET / HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"

// bareExchanges returns the CPU time of this process for one HTTP exchange per period and pod, for [many] pods, during [idle]. Each is five
// system calls (socket, connect, write, read, close) without a parser or a timeout: the minimum cost of an HTTP probe on this host,
// including the wake-ups. The exchanges are at the same instants as aligned probes: a fifth of the period apart, at most a second.
func bareExchanges(ctx context.Context, port int32, period time.Duration) (used time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all errgroup.Group
	for i := range many {
		all.Go(func() error {
			next := time.NewTimer((time.Duration(i) * period / many).Truncate(min(period/5, time.Second)))
			defer next.Stop()
			for {
				select {
				case <-next.C:
					next.Reset(period)
					if err := bareExchange(port); err != nil {
						return err
					}
				case <-ctx.Done():
					return nil
				}
			}
		})
	}
	before, err := ownTime()
	if err == nil {
		err = elapse(ctx, idle)
	}
	after, afterErr := ownTime()
	cancel()
	return after - before, errors.Join(err, afterErr, all.Wait())
}

func bareExchange(port int32) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bare exchange: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("bare exchange: %w", err)
	}
	if _, err := unix.Write(fd, []byte(bareRequest)); err != nil {
		return fmt.Errorf("bare exchange: %w", err)
	}
	if n, err := unix.Read(fd, make([]byte, 4096)); err != nil || n == 0 {
		return fmt.Errorf("bare exchange: %d bytes: %w", n, err)
	}
	return nil
}

// ownTime returns the CPU time of this process.
func ownTime() (time.Duration, error) {
	var used unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}
