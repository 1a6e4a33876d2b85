package podfiles

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Images keeps images that no container runs at present.
type Images interface {
	// KeepImages keeps the contents of images until a later call for the same pod. None releases them. It can be repeated.
	KeepImages(ctx context.Context, pod string, images []lifecycle.Image) error
	// KeptImages returns the names of the pods for which images are kept.
	KeptImages(ctx context.Context) ([]string, error)
}

const (
	// keepTimeout is the timeout of one call of [Images].
	keepTimeout = 30 * time.Second
	// keepCleanup is how long a call may take after its timeout.
	keepCleanup = time.Second
	// endTimeout is the timeout of all calls that are left at the end.
	endTimeout = 5 * time.Second
)

// keeper calls [Images] in the background, and again after a failure.
type keeper struct {
	images Images // nil: nothing is kept
	log    *slog.Logger
	retry  time.Duration
	kick   chan struct{}

	mu   sync.Mutex
	want map[string][]lifecycle.Image // calls that are not done, by name of the pod
	only map[string]bool              // release those of all other pods; nil: done
}

func newKeeper(images Images, log *slog.Logger, retry time.Duration) *keeper {
	return &keeper{images: images, log: log, retry: retry, kick: make(chan struct{}, 1), want: map[string][]lifecycle.Image{}}
}

// keep keeps the images of a pod, and no others of it.
func (k *keeper) keep(pod string, images []lifecycle.Image) {
	k.mu.Lock()
	k.want[pod] = images
	if k.only != nil {
		k.only[pod] = true
	}
	k.mu.Unlock()
	k.wake()
}

// keepNow is keep, and returns when it is done.
func (k *keeper) keepNow(ctx context.Context, pod string, images []lifecycle.Image) error {
	if k.images == nil {
		return nil
	}
	_, err := within(ctx, k.log, func(ctx context.Context) (struct{}, error) { return struct{}{}, k.images.KeepImages(ctx, pod, images) })
	return err
}

// keepOnly releases the images of all pods but these.
func (k *keeper) keepOnly(pods map[string]bool) {
	k.mu.Lock()
	k.only = pods
	k.mu.Unlock()
	k.wake()
}

func (k *keeper) wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// start starts run. The returned function stops it.
func (k *keeper) start(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.run(ctx)
	}()
	return func() {
		cancel()
		<-done
		if k.images == nil {
			return
		}
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		_ = k.carryOut(ending) // the next daemon does what is left
	}
}

// run calls [Images] until ctx ends.
func (k *keeper) run(ctx context.Context) {
	if k.images == nil {
		return
	}
	var again <-chan time.Time // nil: everything is done
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.kick:
		case <-again:
		}
		again = nil
		if err := k.carryOut(ctx); err != nil && ctx.Err() == nil {
			k.log.LogAttrs(ctx, slog.LevelWarn, "images for a rollback are not kept yet", slog.Any("error", err))
			again = time.After(k.retry)
		}
	}
}

// carryOut makes the calls that are not done. It returns the first error.
func (k *keeper) carryOut(ctx context.Context) error {
	k.mu.Lock()
	only := k.only
	k.mu.Unlock()
	if only != nil {
		kept, err := within(ctx, k.log, k.images.KeptImages)
		if err != nil {
			return err
		}
		k.mu.Lock()
		for _, pod := range kept {
			if _, wanted := k.want[pod]; !wanted && !k.only[pod] {
				k.want[pod] = nil
			}
		}
		k.only = nil
		k.mu.Unlock()
	}
	for {
		pod, images, ok := k.take()
		if !ok {
			return nil
		}
		if err := k.keepNow(ctx, pod, images); err != nil {
			k.mu.Lock()
			if _, newer := k.want[pod]; !newer {
				k.want[pod] = images
			}
			k.mu.Unlock()
			return err
		}
	}
}

// take returns a call that is not done, and removes it from the list.
func (k *keeper) take() (pod string, images []lifecycle.Image, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for pod, images = range k.want {
		delete(k.want, pod)
		return pod, images, true
	}
	return "", nil, false
}

// within calls do with a timeout.
func within[T any](ctx context.Context, log *slog.Logger, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	return guard.Call(ctx, keepCleanup, log, do)
}
