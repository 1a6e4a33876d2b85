package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
)

// collect removes images that were unused for too long and, above the high threshold, what is needed to get below the low one: first
// content that nothing refers to, then images, then what finished pods have left.
func (c *Collector) collect(ctx context.Context, limits Limits, above bool) error {
	facts, err := c.survey(ctx)
	if err != nil {
		return err
	}
	rule := Rule{Respect: Collection, MinAge: limits.MinAge, Unused: Never, Low: 100}
	if limits.MaxAge > 0 {
		rule.Unused = limits.MaxAge
	}
	var errs []error
	if above {
		rule.Low = limits.Low
		if _, err := c.o.Images.Sweep(ctx); err != nil {
			errs = append(errs, err)
		}
		facts.Disk, err = c.o.Disk()
	}
	for list := Keep(&facts, rule); len(list) > 0 && err == nil; list = Keep(&facts, rule) {
		w := facts.Images[list[0].Image]
		errs = append(errs, c.discard(ctx, &w, causeText(list[0].Cause, &w, facts.Disk)))
		facts.Images = slices.Delete(facts.Images, list[0].Image, list[0].Image+1)
		if above {
			facts.Disk, err = c.o.Disk()
		}
	}
	if above && err == nil {
		err = c.relieve(ctx, facts.Disk, limits)
	}
	return errors.Join(append(errs, err)...)
}

// causeText returns why an image is removed, as a person reads it.
func causeText(c Cause, w *Whole, disk Disk) string {
	if c == TooOld {
		return fmt.Sprintf("not used for %s, more than images.maxAge", view.Age(w.Unused))
	}
	return "the disk uses " + disk.String()
}

// discard removes an image, unless something claims it by now.
func (c *Collector) discard(ctx context.Context, w *Whole, cause string) error {
	removed, freed, err := c.o.Images.Discard(ctx, w.ID, Collection)
	if removed { // also if its content could not be deleted, or the daemon stops meanwhile
		c.o.Emit(api.EventImageRemoved, event.Fields{
			"image": strings.Join(w.Names, ", "), "size": view.Size(freed), "bytes": strconv.FormatInt(freed, 10), "cause": cause,
		})
	}
	if err != nil {
		return fmt.Errorf("remove image %s: %w", strings.Join(w.Names, ", "), err)
	}
	return nil
}

// relieve removes what finished pods have left if the images that were removed were not enough, and warns if that is not either.
func (c *Collector) relieve(ctx context.Context, disk Disk, limits Limits) (err error) {
	if disk.Above(limits.High) {
		if disk, err = c.relievePods(ctx, limits); err != nil {
			return err
		}
	}
	if disk.Above(limits.High) {
		return c.warn(ctx, disk, limits)
	}
	c.relieved(disk)
	return nil
}

// relievePods removes containers, volumes and old logs of finished pods, the oldest first, until the usage is below the high threshold.
func (c *Collector) relievePods(ctx context.Context, limits Limits) (Disk, error) {
	var errs []error
	disk, err := c.o.Disk()
	pods := c.o.Pods.Finished()
	for n := 0; n < len(pods) && err == nil && disk.Above(limits.High); n++ {
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
	facts, err := c.survey(ctx)
	if err != nil {
		return err
	}
	var used, byHand, young int64
	for n := range facts.Images {
		w := &facts.Images[n]
		switch claim, claimed := facts.Claimed(w, Collection); {
		case !claimed:
			young += w.Size
		case claim.By == image.Person:
			byHand += w.Size
		default:
			used += w.Size
		}
	}
	c.warned = now
	missing := max(0, disk.Used-disk.Size*int64(limits.Low)/100)
	c.o.Emit(api.EventFreeDiskSpaceFailed, event.Fields{
		"usage": fmt.Sprintf("The disk uses %s, the threshold is %d%%", disk.String(), limits.High),
		"bytes": strconv.FormatInt(missing, 10),
		"kept": fmt.Sprintf("Kept: %s of images in use, %s of images requested by hand, %s of images younger than images.minAge",
			view.Size(used), view.Size(byHand), view.Size(young)),
	})
	return nil
}
