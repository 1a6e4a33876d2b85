package images

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/podstead/podstead/runtime/image"
)

// This file decides which images are removed. It reads no clock, calls nothing, and changes nothing that it is given.

// Facts are the images of the host, and who needs them.
type Facts struct {
	Now    time.Time
	Claims []image.Claim
	Images []Whole
	Disk   Disk
}

// Whole is an image with all its names. Its content is deleted when the last name is removed.
type Whole struct {
	// ID is the digest of the image's configuration. An image whose content is damaged is its record.
	ID      string
	Names   []string // sorted
	Records []string // in the store
	// Size is that of the compressed content in bytes.
	Size int64
	// Known is the time since the image was found, and Unused the time since something used it. Both are zero if that is not known.
	Known, Unused time.Duration
}

// isOf reports whether a claim is on the image.
func (w *Whole) isOf(c image.Claim) bool {
	return c.Image == w.ID || slices.Contains(w.Records, c.Image)
}

// Disk is the usage of a file system in percent, rounded up as by df.
type Disk struct {
	Space  int
	Inodes int // 0: the file system has no fixed number of inodes
	// Used and Size are in bytes. Size is what can be used, without the space that is reserved for root.
	Used, Size int64
}

// Above reports whether a threshold is exceeded. As for the kubelet, 100 is never.
func (d Disk) Above(threshold int) bool {
	return threshold < 100 && max(d.Space, d.Inodes) >= threshold
}

func (d Disk) String() string {
	text := fmt.Sprintf("%d%% of the space", d.Space)
	if d.Inodes > 0 {
		text += fmt.Sprintf(" and %d%% of the inodes", d.Inodes)
	}
	return text
}

// Respect are the kinds of claims that a removal respects, the strongest first. It overrides the others.
type Respect []image.Claimant

// What removes images. A removal by name respects no container, which keeps the content of its image without a name.
var (
	// Collection is the removal of images that nothing uses and no person has requested. CollectionAll includes those that a person has.
	Collection    = Respect{image.RunningPod, image.Directory, image.Pod, image.Generation, image.Import, image.Container, image.Person}
	CollectionAll = Respect{image.RunningPod, image.Directory, image.Pod, image.Generation, image.Import, image.Container}

	pruneNames    = Respect{image.RunningPod, image.Directory, image.Pod, image.Generation, image.Import, image.Person}
	pruneAllNames = Respect{image.RunningPod, image.Directory, image.Pod, image.Generation, image.Import}
	removeName    = Respect{image.RunningPod, image.Directory, image.Pod, image.Generation}
	forceName     = Respect{image.RunningPod, image.Directory}
)

// Claimed returns the strongest claim on an image, of those that a removal respects.
func (f *Facts) Claimed(w *Whole, respect Respect) (claim image.Claim, is bool) {
	for _, by := range respect {
		for _, c := range f.Claims {
			if c.By == by && w.isOf(c) && (c.Until.IsZero() || f.Now.Before(c.Until)) {
				return c, true
			}
		}
	}
	return image.Claim{}, false
}

// Used reports whether something other than a person needs an image.
func (f *Facts) Used(w *Whole) bool {
	_, is := f.Claimed(w, CollectionAll)
	return is
}

// Never is the time without use of a [Rule] that removes no image for its age.
const Never time.Duration = math.MaxInt64

// Rule says which images are removed, of those that nothing claims.
type Rule struct {
	Respect Respect
	// MinAge is the age that an image must have.
	MinAge time.Duration
	// Unused is the time without use from which on an image is removed.
	Unused time.Duration
	// Low is the usage of the disk in percent from which on further images are removed; 100: none.
	Low int
}

// Cause is why an image is removed.
type Cause string

// Causes of a [Removal].
const (
	TooOld   Cause = "tooOld"   // it was not used for Rule.Unused
	DiskFull Cause = "diskFull" // and of those that may be removed, it was not used for the longest time
)

// Removal is the removal of an image.
type Removal struct {
	Image int // its index in the facts
	Cause Cause
}

// Keep returns which images are removed now. If none is too old, it is at most one, because what a removal frees is not known before: the
// caller measures the disk, and calls Keep again without the images that it has tried to remove.
func Keep(f *Facts, r Rule) (removals []Removal) {
	oldest := -1
	for n := range f.Images {
		w := &f.Images[n]
		if _, is := f.Claimed(w, r.Respect); is || w.Known < r.MinAge {
			continue
		}
		if w.Unused >= r.Unused {
			removals = append(removals, Removal{n, TooOld})
		} else if oldest < 0 || cmp.Or(cmp.Compare(w.Unused, f.Images[oldest].Unused), cmp.Compare(w.Known, f.Images[oldest].Known)) > 0 {
			oldest = n
		}
	}
	if len(removals) == 0 && oldest >= 0 && f.Disk.Above(r.Low) {
		removals = append(removals, Removal{oldest, DiskFull})
	}
	return removals
}
