package images

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
)

const (
	// checkInterval is how often the usage of the disk is read: the interval of the kubelet's eviction manager.
	checkInterval = 10 * time.Second
	// surveyInterval is how often it is recorded which images are used: the period of the kubelet's image garbage collection.
	surveyInterval = 5 * time.Minute
	// retryInterval is the delay before another collection if one could not free enough.
	retryInterval = time.Minute
	// repeatInterval is how often a warning is repeated while its cause remains.
	repeatInterval = 24 * time.Hour
	// collectTimeout bounds the wait for the removal of what a finished pod has left.
	collectTimeout = 30 * time.Second
	// stopTimeout bounds the write of the file when the daemon stops.
	stopTimeout = 5 * time.Second
)

// HostImages are the images of the host. [*Images] implements it.
type HostImages interface {
	Facts(ctx context.Context) (Facts, error)
	Discard(ctx context.Context, id string, respect Respect) (removed bool, freed int64, err error)
	Sweep(ctx context.Context) (freed int64, err error)
}

// FinishedPods are the finished pods of the host. [*supervisor.Supervisor] implements it.
type FinishedPods interface {
	Finished() []supervisor.Finished
	CollectFinished(ctx context.Context, p *supervisor.Finished) error
}

// Limits are when images are removed.
type Limits struct {
	High, Low int           // usage in percent; 100 or more for High: never
	MaxAge    time.Duration // without use; 0: without limit
	MinAge    time.Duration // since the image was found
}

// CollectorOptions are the options of a [Collector]. All are required.
type CollectorOptions struct {
	Images HostImages
	Pods   FinishedPods
	// File is the path of the file with the use of images.
	File string
	// Disk returns the usage of the file system of the state directory.
	Disk func() (Disk, error)
	// Emit emits an event.
	Emit func(kind api.EventKind, fields event.Fields)
	Log  *slog.Logger
}

// Collector removes unused images. [Collector.Run] must be called.
type Collector struct {
	o CollectorOptions

	mu     sync.Mutex
	limits Limits
	uses   *uses // nil until Run has loaded them

	// pressed is set while the disk is nearly full. The rest is of Run only.
	pressed           bool
	nextTry           time.Time
	nextSurvey        time.Time
	warned, complaint time.Time // when a warning was emitted last: that too little was freed, that a collection failed
}

// NewCollector returns a collector.
func NewCollector(limits Limits, o CollectorOptions) *Collector {
	return &Collector{o: o, limits: limits}
}

// SetLimits changes the limits.
func (c *Collector) SetLimits(limits Limits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits = limits
	c.nextTry, c.nextSurvey = time.Time{}, time.Time{}
}

// Limits returns the limits.
func (c *Collector) Limits() Limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits
}

// Run collects until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	c.mu.Lock()
	c.uses = loadUses(ctx, c.o.File, time.Now(), c.o.Log)
	c.mu.Unlock()
	for range guard.Poll(ctx, checkInterval) {
		c.turn(ctx, time.Now())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses.save(ctx, time.Now())
}

// turn reads the usage of the disk, and collects if that is due.
func (c *Collector) turn(ctx context.Context, now time.Time) {
	c.mu.Lock()
	limits, due := c.limits, !now.Before(c.nextSurvey)
	retry := !now.Before(c.nextTry)
	c.mu.Unlock()
	disk, err := c.o.Disk()
	if err != nil {
		c.fail(ctx, now, err)
		return
	}
	above := disk.Above(limits.High)
	if !above {
		c.relieved(disk)
	} else if !c.pressed {
		c.pressed, retry = true, true
	}
	if !due && (!above || !retry) {
		return
	}
	c.mu.Lock()
	c.nextTry, c.nextSurvey = now.Add(retryInterval), now.Add(surveyInterval)
	c.mu.Unlock()
	if err := c.collect(ctx, limits, above); err != nil {
		c.fail(ctx, now, err)
		return
	}
	c.complaint = time.Time{}
}

// relieved records that the usage is below the high threshold.
func (c *Collector) relieved(disk Disk) {
	if !c.warned.IsZero() {
		c.o.Emit(api.EventDiskSpaceAvailable, event.Fields{"usage": disk.String()})
	}
	c.pressed, c.warned = false, time.Time{}
}

// fail emits the event for a collection that failed, once while the cause remains.
func (c *Collector) fail(ctx context.Context, now time.Time, err error) {
	if ctx.Err() != nil {
		return
	}
	c.o.Log.DebugContext(ctx, "image garbage collection failed", slog.Any("error", err))
	if c.complaint.IsZero() || now.Sub(c.complaint) >= repeatInterval {
		c.complaint = now
		c.o.Emit(api.EventImageGCFailed, event.Fields{"error": err.Error()})
	}
}

// survey returns the facts about images, but for the disk, and records which are used.
func (c *Collector) survey(ctx context.Context) (Facts, error) {
	facts, err := c.o.Images.Facts(ctx)
	if err != nil {
		return facts, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses.update(ctx, &facts, time.Now())
	return facts, nil
}

// Unused returns for how long nothing has used each image, by ID. It omits images that are not known yet.
func (c *Collector) Unused() map[string]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, unused := time.Now(), map[string]time.Duration{}
	if c.uses == nil {
		return unused
	}
	for id, at := range c.uses.byID {
		if c.uses.inUse[id] {
			at.used = now
		}
		unused[id] = now.Sub(at.used)
	}
	return unused
}
