package image

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is what Ensure gives when the store is closed, also in the middle
// of a pull. It says nothing about the image.
var ErrClosed = errors.New("image store is closed")

// work fetches or unpacks an image. Whatever it reports reaches all who wait.
type work func(ctx context.Context, report func(Progress)) (Image, error)

// flights shares work under a key between those who ask for it at the same
// time. The zero value is ready for use.
type flights struct {
	mu     sync.Mutex
	closed bool
	air    map[string]*flight
}

// flight is one piece of work under way. What changes is guarded by the
// mutex of its flights; the result may be read once done is closed.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{} // closed at the end

	waiters   int
	abandoned bool // cancelled, for all waiters have left
	progress  Progress
	changed   chan struct{} // closed and replaced with each new progress

	img Image
	err error
}

// do gives the outcome of the work of this key, which it begins if nobody has,
// or the end of ctx at once. The work goes on for as long as anyone waits for
// it. It calls progress, which may be nil, in this goroutine and only before it
// returns, so a slow one holds up nobody else.
func (f *flights) do(ctx context.Context, key string, w work, progress func(Progress)) (Image, error) {
	fl, err := f.board(ctx, key, w)
	if err != nil {
		return Image{}, err
	}
	var told Progress
	for {
		f.mu.Lock()
		now, changed := fl.progress, fl.changed
		f.mu.Unlock()
		if progress != nil && now != told {
			progress(now)
			told = now
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

// board joins the flight of key or starts one. One that was cancelled because
// all had left it must end first: both would write to the same partial content.
func (f *flights) board(ctx context.Context, key string, w work) (*flight, error) {
	for {
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			return nil, ErrClosed
		}
		fl, ok := f.air[key]
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

// start begins the work with the values of ctx, but not with its end: those who
// join later must not lose it to the first one's. The caller holds the mutex.
func (f *flights) start(ctx context.Context, key string, w work) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	fl := &flight{cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	if f.air == nil {
		f.air = map[string]*flight{}
	}
	f.air[key] = fl
	go func() {
		defer cancel()
		img, err := w(ctx, func(p Progress) { f.publish(fl, p) })
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.closed && err != nil {
			err = ErrClosed
		}
		fl.img, fl.err = img, err
		delete(f.air, key)
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

// leave cancels the work with its last waiter.
func (f *flights) leave(fl *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl.waiters--
	if fl.waiters == 0 {
		fl.abandoned = true
		fl.cancel()
	}
}

// close cancels all work and waits for its end.
func (f *flights) close() {
	f.mu.Lock()
	f.closed = true
	var ends []<-chan struct{}
	for _, fl := range f.air {
		fl.cancel()
		ends = append(ends, fl.done)
	}
	f.mu.Unlock()
	for _, end := range ends {
		<-end
	}
}
