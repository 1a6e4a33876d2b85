package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// bareRequest is what an HTTP probe sends, but for the names of both sides.
const bareRequest = "GET / HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"

// bareExchanges returns the CPU time that this process takes for one HTTP exchange a second and pod, as many as [many], by five
// system calls each (socket, connect, write, read, close), without a parser, a time limit or anything else: the floor of
// what such a probe can cost on this machine. A waking up each second is part of it.
func bareExchanges(ctx context.Context, port int32) (used time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all errgroup.Group
	for i := range many {
		all.Go(func() error {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			if err := elapse(ctx, time.Duration(i)*time.Second/many); err != nil {
				return nil // it was told to end
			}
			for {
				select {
				case <-tick.C:
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

// ownTime is the CPU time of this process.
func ownTime() (time.Duration, error) {
	var used unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}
