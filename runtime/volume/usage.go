package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/podstead/podstead/runtime/volume/tree"
	"github.com/podstead/podstead/spec"
)

// Endless stands for the bytes of a tree that cannot be walked because of what a container has made of it: more than any limit,
// and few enough to be added up.
const Endless = math.MaxInt64 >> 10

// Usage is what an emptyDir on disk takes.
type Usage struct {
	Volume string
	Bytes  int64         // as allocated on disk, each file once however many names it has; [Endless] if Deep
	Limit  spec.Quantity // zero for none
	// Deep says that folders lie in each other too deep to be walked.
	Deep bool
}

// Exceeded reports whether the volume is over its limit, for which the pod fails with the reason Evicted and this message,
// the kubelet's. One that cannot be walked because of what a container has made of it counts as such: else its limit would be none.
func (u Usage) Exceeded() (message string, exceeded bool) {
	switch {
	case u.Limit.Sign() <= 0:
		return "", false
	case u.Deep:
		return fmt.Sprintf("EmptyDir volume %q cannot be held to the limit %q: %v. ", u.Volume, u.Limit.String(), tree.ErrTooDeep), true
	case u.Limit.CmpInt64(u.Bytes) >= 0:
		return "", false
	}
	return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", u.Volume, u.Limit.String()), true
}

// Usage measures the emptyDirs on disk that have a size limit, or all if the pod as a whole has one, by walking them. Those in
// memory are left out: their tmpfs holds the limit. A volume that cannot be measured is in the error, and in the list with what
// was found of it.
func (s *Set) Usage(ctx context.Context, p Pod) ([]Usage, error) {
	return measure(ctx, s, p.UID, func(ctx context.Context) ([]Usage, error) {
		var list []Usage
		var failed problems
		whole := p.Spec.Limit(spec.ResourceEphemeralStorage)
		for i := range p.Spec.Volumes {
			v := &p.Spec.Volumes[i]
			if v.EmptyDir == nil || v.EmptyDir.Medium != "" || v.EmptyDir.SizeLimit == nil && whole.Sign() <= 0 {
				continue
			}
			bytes, err := tree.DiskUsage(ctx, s.path(p.UID, v))
			if errors.Is(err, fs.ErrNotExist) {
				continue // it is not made yet
			}
			deep := errors.Is(err, tree.ErrTooDeep)
			if err != nil && !deep {
				failed = append(failed, fmt.Errorf("volume %q: %w", v.Name, err))
			}
			u := Usage{Volume: v.Name, Bytes: bytes, Deep: deep}
			if deep {
				u.Bytes = Endless
			}
			if v.EmptyDir.SizeLimit != nil {
				u.Limit = *v.EmptyDir.SizeLimit
			}
			list = append(list, u)
		}
		return list, failed.err()
	})
}

// measure runs f alone among the measurements of a pod. It waits for nothing else that is done with the pod's volumes, and nothing
// waits for it: a walk takes as long as a container wants it to, and whatever is changed meanwhile does it no harm.
func measure[T any](ctx context.Context, s *Set, uid string, f func(context.Context) (T, error)) (T, error) {
	if err := checkName("pod UID", uid); err != nil {
		var none T
		return none, err
	}
	return alone(ctx, &s.locks, "usage/"+uid, f)
}

// DiskUsage is what folders of a pod take on disk together, measured like its volumes, or [Endless]. One that is not there takes
// nothing.
func (s *Set) DiskUsage(ctx context.Context, uid string, dirs ...string) (int64, error) {
	return measure(ctx, s, uid, func(ctx context.Context) (int64, error) {
		var total int64
		for _, dir := range dirs {
			bytes, err := tree.DiskUsage(ctx, dir)
			switch {
			case errors.Is(err, tree.ErrTooDeep):
				return Endless, nil
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return 0, err
			}
			total += bytes
		}
		return total, nil
	})
}
