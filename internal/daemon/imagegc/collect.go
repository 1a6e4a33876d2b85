package imagegc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/daemon/images"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
)

// collect removes images that were unused for too long and, above the high threshold, what is needed to get below the low one.
func (c *Collector) collect(ctx context.Context, limits Limits, above bool) error {
	list, err := c.survey(ctx)
	if err != nil {
		return err
	}
	var errs []error
	if limits.MaxAge > 0 {
		for n := range list {
			if unused := c.unused(&list[n]); unused > limits.MaxAge {
				cause := fmt.Sprintf("not used for %s, more than images.maxAge", view.Age(unused))
				errs = append(errs, c.discard(ctx, &list[n], limits, cause))
			}
		}
	}
	if above {
		errs = append(errs, c.relieve(ctx, list, limits))
	}
	return errors.Join(errs...)
}

// unused returns for how long nothing has used an image.
func (c *Collector) unused(w *images.Whole) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.uses.byID[w.ID].used)
}

// discard removes an image, unless it is used, was requested by a person, or is too young.
func (c *Collector) discard(ctx context.Context, w *images.Whole, limits Limits, cause string) error {
	c.mu.Lock()
	young := time.Since(c.uses.byID[w.ID].found) < limits.MinAge
	c.mu.Unlock()
	if young || !w.Removable(false) {
		return nil
	}
	removed, freed, err := c.o.Images.Discard(ctx, w.ID, false)
	if removed { // also if its content could not be deleted, or the daemon stops meanwhile
		c.o.Emit(event.ImageRemoved, event.Fields{
			"image": strings.Join(w.Names, ", "), "size": view.Size(freed), "bytes": strconv.FormatInt(freed, 10), "cause": cause,
		})
	}
	if err != nil {
		return fmt.Errorf("remove image %s: %w", strings.Join(w.Names, ", "), err)
	}
	return nil
}

// relieve frees space and inodes: first content that nothing refers to, then images, then what finished pods have left.
func (c *Collector) relieve(ctx context.Context, list []images.Whole, limits Limits) error {
	var errs []error
	if _, err := c.o.Images.Sweep(ctx); err != nil {
		errs = append(errs, err)
	}
	disk, err := c.o.Disk()
	for n := 0; n < len(list) && err == nil && disk.above(limits.Low); n++ {
		errs = append(errs, c.discard(ctx, &list[n], limits, "the disk uses "+disk.String()))
		disk, err = c.o.Disk()
	}
	if err == nil && disk.above(limits.High) {
		disk, err = c.relievePods(ctx, limits)
	}
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	if disk.above(limits.High) {
		errs = append(errs, c.warn(ctx, disk, limits))
	} else {
		c.relieved(disk)
	}
	return errors.Join(errs...)
}

// relievePods removes containers, volumes and old logs of finished pods, the oldest first, until the usage is below the high threshold.
func (c *Collector) relievePods(ctx context.Context, limits Limits) (Disk, error) {
	var errs []error
	disk, err := c.o.Disk()
	pods := c.o.Pods.Finished()
	for n := 0; n < len(pods) && err == nil && disk.above(limits.High); n++ {
		if pods[n].For < limits.MinAge {
			continue
		}
		errs = append(errs, c.collectPod(ctx, &pods[n]))
		disk, err = c.o.Disk()
	}
	return disk, errors.Join(append(errs, err)...)
}

func (c *Collector) collectPod(ctx context.Context, p *supervisor.Finished) error {
	ctx, cancel := context.WithTimeoutCause(ctx, collectTimeout, fmt.Errorf("timed out after %v", collectTimeout))
	defer cancel()
	if err := c.o.Pods.CollectFinished(ctx, p); err != nil {
		return fmt.Errorf("remove what pod %q has left: %w", p.Pod.Name, err)
	}
	if _, err := c.o.Images.Sweep(ctx); err != nil { // the writable layers of its containers
		return err
	}
	return nil
}

// warn emits that nothing more can be freed, when that begins and then once a day.
func (c *Collector) warn(ctx context.Context, disk Disk, limits Limits) error {
	now := time.Now()
	if !c.warned.IsZero() && now.Sub(c.warned) < repeatInterval {
		return nil
	}
	list, err := c.survey(ctx)
	if err != nil {
		return err
	}
	var used, byHand, young int64
	for n := range list {
		switch w := &list[n]; {
		case w.Used:
			used += w.Size
		case w.ByHand:
			byHand += w.Size
		default:
			young += w.Size
		}
	}
	c.warned = now
	missing := max(0, disk.Used-disk.Size*int64(limits.Low)/100)
	c.o.Emit(event.FreeDiskSpaceFailed, event.Fields{
		"usage": fmt.Sprintf("The disk uses %s, the threshold is %d%%", disk.String(), limits.High), "bytes": strconv.FormatInt(missing, 10),
		"kept": fmt.Sprintf("Kept: %s of images in use, %s of images requested by hand, %s of images younger than images.minAge",
			view.Size(used), view.Size(byHand), view.Size(young)),
	})
	return nil
}
