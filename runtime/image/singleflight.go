package image

import (
	"context"
	"sync"
)

// ErrClosed is the error of Ensure after Close, also during a pull. It is not a fault of the image. [errdefs.IsUnavailable] holds for it.
var ErrClosed error = closedError{}

type closedError struct{}

func (closedError) Error() string { return "the daemon is stopping" }

// Unavailable marks the error for package errdefs.
func (closedError) Unavailable() {}

// work pulls or unpacks an image. Its reports reach all callers that share it.
type work func(ctx context.Context, report func(Progress)) (Image, error)

// flights shares work under a key between concurrent callers. The zero value is usable.
type flights struct {
	mu      sync.Mutex
	closed  bool
	running map[string]*flight
}

// flight is one work in progress. The mutex of its flights guards it. The result may be read after done is closed.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the work returns

	waiters   int
	abandoned bool // cancelled because no waiter is left
	progress  Progress
	changed   chan struct{} // closed and replaced with each progress report

	img Image
	err error
}

// do returns the result of the work of this key, and starts it if it is not running. It returns at once when ctx is cancelled.
// The work runs while at least one caller waits. progress may be nil. It is called in this goroutine and only before do returns,
// so a slow progress function delays no other caller.
func (f *flights) do(ctx context.Context, key string, w work, progress func(Progress)) (Image, error) {
	fl, err := f.join(ctx, key, w)
	if err != nil {
		return Image{}, err
	}
	var reported Progress
	for {
		f.mu.Lock()
		now, changed := fl.progress, fl.changed
		f.mu.Unlock()
		if progress != nil && now != reported {
			progress(now)
			reported = now
		}
		select {
		case <-fl.done:
			return fl.img, fl.err
		case <-changed:
		case <-ctx.Done():
			f.leave(fl)
			return Image{}, context.Cause(ctx)
		}
	}
}

// join joins the flight of key or starts one. A cancelled flight must end first, because both would write to the same partial
// content.
func (f *flights) join(ctx context.Context, key string, w work) (*flight, error) {
	for {
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			return nil, ErrClosed
		}
		fl, ok := f.running[key]
		if !ok {
			fl = f.start(ctx, key, w)
		}
		if !fl.abandoned {
			fl.waiters++
			f.mu.Unlock()
			return fl, nil
		}
		f.mu.Unlock()
		select {
		case <-fl.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// start starts the work with the values of ctx, but not its cancellation: callers that join later must not lose the work when the
// first one is cancelled. The caller holds the mutex.
func (f *flights) start(ctx context.Context, key string, w work) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	fl := &flight{cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	if f.running == nil {
		f.running = map[string]*flight{}
	}
	f.running[key] = fl
	go func() {
		defer cancel()
		img, err := w(ctx, func(p Progress) { f.publish(fl, p) })
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.closed && err != nil {
			err = ErrClosed
		}
		fl.img, fl.err = img, err
		delete(f.running, key)
		close(fl.done)
	}()
	return fl
}

func (f *flights) publish(fl *flight, p Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p == fl.progress {
		return
	}
	fl.progress = p
	close(fl.changed)
	fl.changed = make(chan struct{})
}

// leave cancels the work when its last waiter leaves.
func (f *flights) leave(fl *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl.waiters--
	if fl.waiters == 0 {
		fl.abandoned = true
		fl.cancel()
	}
}

// close cancels all work and waits for it to return.
func (f *flights) close() {
	f.mu.Lock()
	f.closed = true
	var ends []<-chan struct{}
	for _, fl := range f.running {
		fl.cancel()
		ends = append(ends, fl.done)
	}
	f.mu.Unlock()
	for _, end := range ends {
		<-end
	}
}
